"""Runs slices and delta programs on Spark. Results are written by the executors as Parquet, never through Python."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import PurePosixPath

import grpc
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog import errors
from catalog.errors import Error
from catalog.lake import Cursor, Lake
from catalog.metrics import EngineName
from catalog.model import ROW_ID, Relation, row_id_column
from catalog.names import literal, quote
from catalog.places import Place, remove_tree
from catalog.row_ids import ALL, NONE, ROW_ID_COLUMN, SNAPSHOT_COLUMN, RowIds
from catalog.translation import DISK_FULL, disk_full
from executor.advance import (
    Addition,
    Advance,
    Application,
    Changes,
    Fill,
    View,
    applications,
    computed,
    filled,
    make_table,
    own_application,
)
from executor.groups import Group
from executor.lake_files import DataFile, TableFiles, table_files
from executor.program import Apply, Program, program
from executor.spark_files import FILE, POSITION, SparkFiles, spark_files
from executor.versions import Version, rows_at, rows_new
from planner.backfill import FillQuery
from planner.delta.compiler import VIEW_CHANGES
from planner.functions.emit import SPARK, to_sql
from planner.nodes import Scan
from planner.stream import State

SparkError = (PySparkException, grpc.RpcError)

# Below this many rows an input is handed over as one Parquet file that DuckDB writes: cheaper than listing files.
SMALL_INPUT_ROWS = 200_000


@dataclass(frozen=True)
class Exchange:
    """How the rows that a slice reads are spread over so many tasks: by their key, or without moving them."""

    tasks: int
    by_key: bool


@dataclass(frozen=True, eq=False)
class SparkEngine:
    """One Spark session and a scratch directory that both the executors and this process can reach.

    `data` is where rows are written that may become files of the lake as they are, if any may.
    """

    group: Group
    session: SparkSession
    files: SparkFiles
    scratch: Place
    data: Place | None = None
    exchange: Exchange | None = None
    # Called before Spark is made to compute anything; raises to give up.
    check: Callable[[], None] = lambda: None
    # What queries read by name: rows and other queries. They go to Spark with the one that reads them: as views they
    # cost a call each.
    inputs: dict[str, DataFrame] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> EngineName:
        return "spark"

    def run_to_parquet(self, query: str, target: Place, texts: Iterable[str]) -> list[str]:
        """Run a query and write its rows as Parquet files into a new directory. Returns the files.

        `texts` are the columns that hold text.
        """
        self.check()
        remove_tree(target)
        with self._freeing(target):
            return self.files.write(self.query(query), target, texts)

    def bind_slice(self, cursor: Cursor, scan: Scan, snapshot: int, rows: RowIds = ALL) -> None:
        """Make `<input>_new` the scanned rows at a snapshot, all or some of them."""
        self.inputs[f"{scan.input}_new"] = self._spread(scan, self.read(cursor, scan, snapshot, rows))

    def _spread(self, scan: Scan, frame: DataFrame) -> DataFrame:
        if self.exchange is None:
            return frame
        if not self.exchange.by_key:
            return frame.coalesce(self.exchange.tasks)
        key = [F.col(f"`{name}`") for name in scan.relation.key if name in scan.columns]
        return frame.repartition(self.exchange.tasks, *key)

    def bind_files(self, name: str, files: Iterable[str]) -> None:
        """Make a relation of Parquet files."""
        self._bind(name, self.files.read(list(files)))

    def bind_query(self, cursor: Cursor, name: str, query: str, schema: str | None = None) -> None:
        """Make a relation of the rows of a DuckDB query, written as one Parquet file.

        Told the schema, Spark need not run a job to find it.
        """
        self._bind(name, self.files.read([self._export(cursor, query)], schema))

    def bind_state(self, cursor: Cursor, view: View, state: State) -> None:
        """Make `<state>_state` the stored rows of an operator."""
        query = f"FROM {view.state_table(state).sql}"
        self.bind_query(cursor, f"{state.name}_state", query, _state_schema(view, state))

    def bind_state_files(self, view: View, state: State, files: Sequence[str]) -> None:
        """The same where a state's rows are all in some files, if there are any."""
        schema = _state_schema(view, state)
        rows = self.files.read(files, schema) if files else self.session.createDataFrame([], schema)
        self._bind(f"{state.name}_state", rows)

    def read(self, cursor: Cursor, scan: Scan, snapshot: int, rows: RowIds = ALL) -> DataFrame:
        """The scanned columns of some rows of a relation at a snapshot."""
        row = cursor.execute(f"SELECT count(*) FROM {scan.relation.lake_name} AT (VERSION => {snapshot})").fetchone()
        if row and row[0] <= SMALL_INPUT_ROWS:
            exported = self._export(cursor, rows_at(scan, snapshot, rows))
            return self.files.read([exported], _schema(scan.relation, scan.columns))
        return self._read_files(cursor, scan, snapshot, rows)

    def _read_files(self, cursor: Cursor, scan: Scan, snapshot: int, rows: RowIds) -> DataFrame:
        relation, columns = scan.relation, list(scan.columns)
        table = table_files(cursor, relation, snapshot, self.scratch / uuid.uuid4().hex)
        with_id = columns if ROW_ID in columns else [*columns, ROW_ID]
        # Only where a file has other rows too they are looked at one by one.
        whole = [file for file in table.files if _is_covered(file, rows)]
        others = (file for file in table.files if not _is_covered(file, rows))
        partly = [file for file in others if file.has_row_ids or _overlaps(file, rows)]
        found = self._read_groups(cursor, partly, table, relation, with_id)
        if table.inlined is not None:
            frame = self.files.read([str(table.inlined)], _schema(relation, with_id, lake=True))
            found.append(_named(frame, relation, with_id))
        parts = [
            *self._read_groups(cursor, whole, table, relation, columns),
            *(frame.where(rows.condition(ROW_ID)).drop(*{ROW_ID} - {*columns}) for frame in found),
        ]
        if not parts:
            return self.session.createDataFrame([], _schema(relation, columns))
        return reduce(lambda frame, part: frame.unionByName(part), parts)

    def _read_groups(
        self, cursor: Cursor, files: list[DataFile], table: TableFiles, relation: Relation, columns: list[str]
    ) -> list[DataFrame]:
        """Some columns of some files of a table."""
        return [
            self._read_group(cursor, [file for file in files if file.shape == shape], table, relation, columns)
            for shape in dict.fromkeys(file.shape for file in files)
        ]

    def _read_group(
        self, cursor: Cursor, files: list[DataFile], table: TableFiles, relation: Relation, columns: list[str]
    ) -> DataFrame:
        """Files of one shape, whose columns have the names of the lake."""
        first, needs_row_id = files[0], ROW_ID in columns
        by_name = {column.name: column for column in relation.stored}
        there = [n for n in columns if n in by_name and by_name[n].lake_name not in first.missing]
        schema = _schema(relation, there, lake=True)
        if first.has_row_ids:
            schema += f", {ROW_ID_COLUMN} BIGINT"
        if first.has_snapshot_ids:
            schema += f", {SNAPSHOT_COLUMN} BIGINT"
        derives_row_id = needs_row_id and not first.has_row_ids
        with_positions = table.deletes is not None or derives_row_id
        frame = self.files.read_data(files, schema.lstrip(", "), with_positions)
        if first.has_snapshot_ids:
            frame = frame.where(F.col(SNAPSHOT_COLUMN) <= table.snapshot)
        if table.deletes is not None:
            deletes = self.files.read([str(table.deletes)], "file_name STRING, pos BIGINT")
            gone = (frame[FILE] == deletes["file_name"]) & (frame[POSITION] == deletes["pos"])
            frame = frame.join(F.broadcast(deletes), gone, "left_anti")
        missing = [name for name in columns if name in by_name and name not in there]
        if missing:
            frame = frame.crossJoin(F.broadcast(self._defaults(cursor, table, relation, missing)))
        if derives_row_id:
            starts = {PurePosixPath(file.path).name: file.row_id_start for file in files}
            start = F.create_map(*(F.lit(part) for pair in starts.items() for part in pair))
            frame = frame.withColumn(ROW_ID, F.try_element_at(start, F.col(FILE)) + F.col(POSITION))
        elif needs_row_id:
            frame = frame.withColumn(ROW_ID, F.col(ROW_ID_COLUMN))
        return _named(frame, relation, columns)

    def _defaults(self, cursor: Cursor, table: TableFiles, relation: Relation, names: list[str]) -> DataFrame:
        """One row of the values that files have which lack these columns, under the names of the lake."""
        lake_names = [column.lake_name for column in relation.stored if column.name in names]
        values = ", ".join(f"{table.defaults[name]} AS {quote(name)}" for name in lake_names)
        exported = self._export(cursor, f"SELECT {values}")
        return self.files.read([exported], _schema(relation, names, lake=True))

    def advance(self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes) -> Advance:
        """As `executor.advance.Engine`: what Spark writes becomes temporary relations of the cursor."""
        made = program(view.plan, changes.inputs, changes.retracts, SPARK)
        for scan in view.plan.scans:
            self._bind_versions(cursor, scan, versions[scan.input], made)
            if scan.input in changes.inputs:
                self._bind_changes(cursor, scan, versions[scan.input])
        for state in view.plan.states:
            self.bind_state(cursor, view, state)
        if view.plan.reads_now:
            self.set_times(changes.times)
        is_left = self.data is None  # the changes are all that is written of the view's own
        for step in made.steps:
            if step.is_lookup or step.name not in made.shared or (is_left and step.name == VIEW_CHANGES):
                self.queries[step.name] = step.query
                continue
            # Several later steps read each of these; computed once, and cut off so that plans stay small.
            directory = self._new_directory()
            with self._freeing(directory):
                self._bind(step.name, self.files.write_and_read(self.query(step.query), directory))
        *states, own = zip(applications(view, made), made.applies, strict=True)
        applied = [self._apply(cursor, view, *item) for item in (states if is_left else (*states, own))]
        left = f"j{view.relation.id}_changes"
        if is_left or view.relation.is_sink:  # of what is being created nobody reads it before
            self._leave(cursor, left, f"SELECT * FROM `{VIEW_CHANGES}`")
        if is_left:
            applied.append(own_application(view, left))
        return computed(cursor, view, tuple(applied), left)

    def _apply(self, cursor: Cursor, view: View, target: Application, item: Apply) -> Application:
        """Leave what an application removes and adds."""
        self._leave(cursor, target.removed, item.removed)
        return replace(target, added=self._add(cursor, view, target.added, item.added))

    def fill(
        self, cursor: Cursor, view: View, snapshot: int, rows: Mapping[str, RowIds], queries: Sequence[FillQuery],
        time_us: int,
    ) -> Fill:  # fmt: skip
        """As `executor.advance.Engine`."""
        if view.plan.reads_now:
            self.set_times((time_us, time_us))
        for scan in view.plan.scans:
            self.bind_slice(cursor, scan, snapshot, rows[scan.input])
        additions = []
        for number, item in enumerate(queries):
            table = Addition(view.table_of(item.target), f"fill_{number}", item.columns)
            added = self._add(cursor, view, table, to_sql(item.query, SPARK))
            if item.target and added.files:
                self.bind_files(f"{item.target}_state", added.files)
            elif item.target:
                self.bind_query(cursor, f"{item.target}_state", f"FROM {table.table.sql}")
            additions.append(added)
        return filled(cursor, view, additions)

    def set_times(self, times: tuple[int, int]) -> None:
        """Let `now()` of a view's SQL be these times."""
        for version, time_us in zip(("old", "new"), times, strict=True):
            self.session.sql(f"DECLARE OR REPLACE VARIABLE now_{version} TIMESTAMP DEFAULT timestamp_micros({time_us})")

    def _bind_versions(self, cursor: Cursor, scan: Scan, version: Version, made: Program) -> None:
        """Make `<input>_old` and `<input>_new`, if a step reads them."""
        old, new = (f"{scan.input}_{which}" for which in ("old", "new"))
        if any(old in step.query for step in made.steps):
            self._bind(old, self.read(cursor, scan, version.old, version.old_rows))
        if any(new in step.query for step in made.steps):
            if version.pending is None:
                self._bind(new, self.read(cursor, scan, version.new, version.new_rows))
            else:
                self.bind_query(cursor, new, rows_new(scan, version), _schema(scan.relation, scan.columns))

    def _bind_changes(self, cursor: Cursor, scan: Scan, version: Version) -> None:
        """Make `<input>_changes`: the rows that are read on, or what the cursor has under that name."""
        name = f"{scan.input}_changes"
        if version.added_rows != NONE:
            self._bind(name, self.read(cursor, scan, version.new, version.added_rows).withColumn("_weight", F.lit(1)))
        else:
            schema = f"{_schema(scan.relation, scan.columns)}, _weight BIGINT"
            self.bind_query(cursor, name, f"SELECT * REPLACE (_weight::BIGINT AS _weight) FROM {name}", schema)

    def _add(self, cursor: Cursor, view: View, addition: Addition, query: str) -> Addition:
        """Leave the rows of a Spark query as an addition, with files where they may become the lake's."""
        if self.data is None:
            self._leave(cursor, addition.rows, query)
            return addition
        directory = self.data / addition.rows
        written = self.run_to_parquet(query, directory, view.texts)
        files = [file for file in written if file_rows(cursor, file)]
        listed = ", ".join(map(literal, files or written[:1]))
        cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {addition.rows} AS FROM read_parquet([{listed}])")
        return replace(addition, files=tuple(files), directory=directory)

    def _leave(self, cursor: Cursor, name: str, query: str) -> None:
        """Make the rows of a Spark query a temporary table of the cursor."""
        target = self._new_directory()
        with self._freeing(target):
            written = self.files.write(self.query(query), target)
        files = f"read_parquet([{', '.join(map(literal, written))}])"
        make_table(cursor, name, f"FROM {files}")

    def _new_directory(self) -> Place:
        """Where something is about to be written."""
        self.check()
        return self.scratch / uuid.uuid4().hex

    @contextlib.contextmanager
    def _freeing(self, target: Place) -> Iterator[None]:
        """What could not be written takes no room: whoever tries again may need it.

        Spark (4.3.0) deletes a Parquet file that it could not finish but leaves it open: its room is not free before
        the next garbage collection, which on an idle group may be hours away.
        """
        try:
            yield
        except BaseException as error:
            remove_tree(target)
            if DISK_FULL in str(error):
                with contextlib.suppress(*SparkError):
                    self.session.sql("SELECT java_method('java.lang.System', 'gc')").collect()
            raise

    def _export(self, cursor: Cursor, query: str) -> str:
        target = str(self.scratch / f"{uuid.uuid4().hex}.parquet")
        cursor.execute(f"COPY ({query}) TO {literal(target)} (FORMAT parquet)")
        return target

    def _bind(self, name: str, frame: DataFrame) -> None:
        self.inputs[name] = frame

    def query(self, query: str) -> DataFrame:
        """The rows of a query, which Spark reads when it is to compute them: `session.sql` is a call before that."""
        from pyspark.sql.connect import dataframe  # not at the server's start: it takes long
        from pyspark.sql.connect.plan import SQL, SubqueryAlias

        text, read = query, []
        for name, part in reversed(self.queries.items()):  # each may read those before
            if f"`{name}`" in text:
                text += part
                read.append(f"`{name}` AS ({part})")
        aliases = [SubqueryAlias(frame._plan, name) for name, frame in self.inputs.items() if name in text]
        whole = f"WITH {', '.join(reversed(read))} SELECT * FROM ({query})" if read else query
        return dataframe.DataFrame(SQL(whole, views=aliases), self.session)

    def interrupt(self) -> None:
        """Stop what the session is running; the call in progress fails."""
        self.group.interrupt(self.session)

    def abandon(self) -> None:
        """The same where Spark does not answer; the engine cannot be used any more."""
        self.group.abandon(self.session)


@contextlib.contextmanager
def spark_engine(
    group: Group, lake: Lake, purpose: str, data: Place | None = None, exchange: Exchange | None = None,
    check: Callable[[], None] = lambda: None,
) -> Iterator[SparkEngine]:  # fmt: skip
    """A session of a group with a scratch directory that is removed afterwards."""
    scratch = lake.new_temporary(purpose)
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        # A group's own setting fits its cores; another costs two calls.
        is_other = exchange is not None and exchange.tasks != group.size.all_cores
        with group.session() as session:
            if exchange is not None and is_other:
                session.conf.set("spark.sql.shuffle.partitions", exchange.tasks)
            try:
                yield SparkEngine(group, session, spark_files(session, scratch), scratch, data, exchange, check)
            finally:
                if is_other:
                    with contextlib.suppress(*SparkError):  # of a session that is dead
                        session.conf.unset("spark.sql.shuffle.partitions")
    finally:
        remove_tree(scratch)


def file_rows(cursor: Cursor, file: str) -> int:
    """The number of rows of a Parquet file."""
    row = cursor.execute(f"SELECT num_rows FROM parquet_file_metadata({literal(file)})").fetchone()
    return row[0] if row else 0


def _state_schema(view: View, state: State) -> str:
    """Spark's schema of a state's rows."""
    if state.in_view:
        return ", ".join(f"`{column.lake_name}` {column.type.spark()}" for column in view.relation.stored)
    return ", ".join(f"`{field.name}` {field.type.spark()}" for field in state.node.fields)


def _schema(relation: Relation, columns: Sequence[str], lake: bool = False) -> str:
    """Spark's schema of some columns of a relation, under the names of the lake if so. Raises Error 0A000 for a type
    Spark cannot hold."""
    by_name = {column.name: column for column in (row_id_column(), *relation.columns)}
    chosen = (by_name[name] for name in columns)
    return ", ".join(f"`{column.lake_name if lake else column.name}` {column.type.spark()}" for column in chosen)


def _named(frame: DataFrame, relation: Relation, columns: Sequence[str]) -> DataFrame:
    """Some columns of a frame with the names of the lake, under their own."""
    lake_names = {column.name: column.lake_name for column in relation.columns}
    return frame.select(*(F.col(f"`{lake_names.get(name, name)}`").alias(name) for name in columns))


def _overlaps(file: DataFile, rows: RowIds) -> bool:
    start = file.row_id_start
    return start is None or rows.overlaps(start, start + file.row_count)


def _is_covered(file: DataFile, rows: RowIds) -> bool:
    start = file.row_id_start
    return rows == ALL or (start is not None and not file.has_row_ids and rows.covers(start, start + file.row_count))


def spark_error(error: BaseException) -> Error:
    """What went wrong on Spark: the first line, with the SQLSTATE of what is wrong with the data; or a full disk."""
    text = str(error)
    if isinstance(error, PySparkException):
        text = error.getMessage() or text
    elif isinstance(error, grpc.RpcError) and hasattr(error, "details"):
        text = error.details() or text
    if DISK_FULL in text or DISK_FULL in str(error):
        return disk_full(f"{text}\n{error}")
    if isinstance(error, PythonException):  # of `executor.object_tasks`: what it raised is behind where
        last = [line for line in text.splitlines() if line.strip() and "SQLSTATE: " not in line][-1]
        return Error(last.partition(": ")[2] or last, errors.IO_ERROR)
    first = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    if _is_gone(error):
        return Error(f"Spark has gone: {first}", errors.INSUFFICIENT_RESOURCES)
    if any(word in text for word in _NO_MEMORY):
        return Error(first, errors.OUT_OF_MEMORY)
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    return Error(first, state) if state and state.startswith("22") else Error(first)


# Java's words.
_NO_MEMORY = ("java.lang.OutOfMemoryError", "Java heap space")


def _is_gone(error: BaseException) -> bool:
    """Whether the server of Spark Connect has ended or does not answer, which says nothing about what it was to do."""
    code = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    return code is not None and code() == grpc.StatusCode.UNAVAILABLE
