// The PostgreSQL JDBC driver: metadata, prepared statements past the binary threshold, fetch size, batches, cancel.
//
// java -cp /usr/share/java/postgresql.jar JdbcClient.java "jdbc:postgresql://127.0.0.1:4566/dev?user=root"
// Prints "ok" and the name of each check that passed, and the exception of each that did not; then the exit code is 1.

import java.math.BigDecimal;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;

public class JdbcClient {
    static final String ENDLESS =
            "SELECT count(*) FROM generate_series(1, 1000000) a (i) CROSS JOIN generate_series(1, 1000000) b (j)";
    static String url;
    static boolean failed = false;

    interface Check {
        void run(Connection connection) throws Exception;
    }

    public static void main(String[] arguments) {
        url = arguments[0];
        check("connection", JdbcClient::connection);
        check("values", JdbcClient::values);
        check("prepared", JdbcClient::prepared);
        check("result metadata", JdbcClient::resultMetadata);
        check("database metadata", JdbcClient::databaseMetadata);
        check("keys metadata", JdbcClient::keysMetadata);
        check("maximum of rows", JdbcClient::maxRows);
        check("fetch size", JdbcClient::fetchSize);
        check("batches", JdbcClient::batches);
        check("generated keys", JdbcClient::generatedKeys);
        check("several results", JdbcClient::severalResults);
        check("blocks", JdbcClient::blocks);
        check("cancel", JdbcClient::cancel);
        check("query timeout", JdbcClient::queryTimeout);
        check("errors", JdbcClient::errors);
        check("copy", JdbcClient::copy);
        check("simple mode", ignored -> {
            try (Connection connection = connect("preferQueryMode", "simple")) {
                prepared(connection);
                databaseMetadata(connection);
                fetchSize(connection);
            }
        });
        System.exit(failed ? 1 : 0);
    }

    static void check(String name, Check check) {
        try (Connection connection = connect()) {
            check.run(connection);
            System.out.println("ok " + name);
        } catch (Exception | AssertionError error) {
            failed = true;
            System.out.println("failed " + name);
            error.printStackTrace(System.out);
        }
    }

    static Connection connect(String... options) throws SQLException {
        Properties properties = new Properties();
        for (int i = 0; i < options.length; i += 2) {
            properties.setProperty(options[i], options[i + 1]);
        }
        return DriverManager.getConnection(url, properties);
    }

    static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    static void run(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    static List<List<Object>> rows(ResultSet result) throws SQLException {
        List<List<Object>> found = new ArrayList<>();
        try (result) {
            int columns = result.getMetaData().getColumnCount();
            while (result.next()) {
                List<Object> row = new ArrayList<>();
                for (int i = 1; i <= columns; i++) {
                    row.add(result.getObject(i));
                }
                found.add(row);
            }
        }
        return found;
    }

    static List<List<Object>> query(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return rows(statement.executeQuery(sql));
        }
    }

    /** The columns of a result, of each row. */
    static List<String> strings(ResultSet result, String... columns) throws SQLException {
        List<String> found = new ArrayList<>();
        try (result) {
            while (result.next()) {
                List<String> row = new ArrayList<>();
                for (String column : columns) {
                    row.add(result.getString(column));
                }
                found.add(String.join(" ", row));
            }
        }
        return found;
    }

    static void connection(Connection connection) throws SQLException {
        same(true, connection.isValid(5));
        same("public", connection.getSchema());
        same("dev", connection.getCatalog());
        same(List.of(List.of("checks")), query(connect("ApplicationName", "checks"), "SHOW application_name"));
        try (Connection readOnly = connect("readOnly", "true")) {
            readOnly.setReadOnly(true);
            same(true, readOnly.isReadOnly());
        }
        try (Connection primary = connect("targetServerType", "primary")) {
            same(true, primary.isValid(5));
        }
        connection.setSchema("public");
    }

    static void values(Connection connection) throws SQLException {
        run(connection, "CREATE TABLE j_values (k int PRIMARY KEY, s smallint, b bigint, r real, d double precision, "
                + "n numeric(20,4), t varchar, f boolean, day date, moment timestamp, zoned timestamptz, bytes bytea, "
                + "j jsonb, a int[], at time)");
        Timestamp moment = Timestamp.valueOf("2024-02-29 12:30:00.123456");
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO j_values VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?::jsonb,?,?)")) {
            insert.setInt(1, 1);
            insert.setShort(2, (short) -2);
            insert.setLong(3, Long.MIN_VALUE);
            insert.setFloat(4, 0.5f);
            insert.setDouble(5, -1e100);
            insert.setBigDecimal(6, new BigDecimal("-12345.6789"));
            insert.setString(7, "it's \\ žluť");
            insert.setBoolean(8, true);
            insert.setDate(9, java.sql.Date.valueOf("2024-02-29"));
            insert.setTimestamp(10, moment);
            insert.setTimestamp(11, moment);
            insert.setBytes(12, new byte[] {0, -1});
            insert.setString(13, "[1]");
            insert.setArray(14, connection.createArrayOf("int4", new Integer[] {1, null, 3}));
            insert.setTime(15, Time.valueOf("01:02:03"));
            same(1, insert.executeUpdate());
            insert.setInt(1, 2);
            for (int i = 2; i <= 15; i++) {
                insert.setNull(i, Types.NULL);
            }
            same(1, insert.executeUpdate());
        }
        // The fifth run asks for binary results.
        for (int round = 0; round < 7; round++) {
            try (PreparedStatement select = connection.prepareStatement("SELECT * FROM j_values ORDER BY k");
                    ResultSet result = select.executeQuery()) {
                same(true, result.next());
                same((short) -2, result.getShort("s"));
                same(Long.MIN_VALUE, result.getLong("b"));
                same(0.5f, result.getFloat("r"));
                same(-1e100, result.getDouble("d"));
                same(new BigDecimal("-12345.6789"), result.getBigDecimal("n"));
                same("it's \\ žluť", result.getString("t"));
                same(true, result.getBoolean("f"));
                same(java.sql.Date.valueOf("2024-02-29"), result.getDate("day"));
                same(moment, result.getTimestamp("moment"));
                same(moment, result.getTimestamp("zoned"));
                same("[0, -1]", Arrays.toString(result.getBytes("bytes")));
                same("[1]", result.getString("j"));
                same("[1, null, 3]", Arrays.toString((Object[]) result.getArray("a").getArray()));
                same(Time.valueOf("01:02:03"), result.getTime("at"));
                same(true, result.next());
                for (int i = 2; i <= 15; i++) {
                    same(null, result.getObject(i));
                }
                same(false, result.next());
            }
        }
        run(connection, "DROP TABLE j_values");
    }

    static void prepared(Connection connection) throws SQLException {
        run(connection, "CREATE TABLE j_prepared (k int PRIMARY KEY, v varchar, n numeric(10,2))");
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO j_prepared VALUES (?, ?, ?)");
                PreparedStatement select = connection.prepareStatement(
                        "SELECT v, n FROM j_prepared WHERE k = ? AND v LIKE ? AND n BETWEEN ? AND ?");
                PreparedStatement update = connection.prepareStatement(
                        "UPDATE j_prepared SET n = n + ? WHERE k >= ? AND v IN (?, ?)")) {
            for (int i = 1; i <= 12; i++) {
                insert.setInt(1, i);
                insert.setString(2, "v" + i);
                insert.setBigDecimal(3, BigDecimal.valueOf(i));
                same(1, insert.executeUpdate());
                select.setInt(1, i);
                select.setString(2, "v%");
                select.setInt(3, i);
                select.setBigDecimal(4, BigDecimal.valueOf(i));
                same(List.of(List.of("v" + i, new BigDecimal(i + ".00"))), rows(select.executeQuery()));
            }
            update.setDouble(1, 0.5);
            update.setLong(2, 11);
            update.setString(3, "v11");
            update.setString(4, "v12");
            same(2, update.executeUpdate());
            ParameterMetaData parameters = select.getParameterMetaData();
            same(4, parameters.getParameterCount());
            same("int4", parameters.getParameterTypeName(1));
        }
        try (PreparedStatement any = connection.prepareStatement("SELECT k FROM j_prepared WHERE k = ANY(?) ORDER BY k")) {
            any.setArray(1, connection.createArrayOf("int4", new Integer[] {2, 5, 77}));
            same(List.of(List.of(2), List.of(5)), rows(any.executeQuery()));
        }
        try (PreparedStatement page = connection.prepareStatement("SELECT k FROM j_prepared ORDER BY k LIMIT ? OFFSET ?")) {
            page.setInt(1, 2);
            page.setInt(2, 3);
            same(List.of(List.of(4), List.of(5)), rows(page.executeQuery()));
        }
        run(connection, "DROP TABLE j_prepared");
    }

    static void resultMetadata(Connection connection) throws SQLException {
        run(connection, "CREATE TABLE j_meta (k int PRIMARY KEY, v varchar NOT NULL, n numeric(10,2), at timestamptz)");
        try (PreparedStatement select = connection.prepareStatement("SELECT k AS key, v, n, at, k + 1 AS more FROM j_meta")) {
            ResultSetMetaData before = select.getMetaData();
            same(5, before.getColumnCount());
            ResultSetMetaData meta = select.executeQuery().getMetaData();
            same("key", meta.getColumnLabel(1));
            same(Types.INTEGER, meta.getColumnType(1));
            same(Types.VARCHAR, meta.getColumnType(2));
            same("java.math.BigDecimal", meta.getColumnClassName(3));
            same(10, meta.getPrecision(3));
            same(2, meta.getScale(3));
            same("timestamptz", meta.getColumnTypeName(4));
            // These look the column up by the table's OID in RowDescription.
            same("j_meta", meta.getTableName(1));
            var origin = (org.postgresql.PGResultSetMetaData) meta;
            same("public", origin.getBaseSchemaName(1));
            same("k", origin.getBaseColumnName(1));
            same(ResultSetMetaData.columnNoNulls, meta.isNullable(2));
            same(ResultSetMetaData.columnNullable, meta.isNullable(3));
            same(false, meta.isAutoIncrement(1));
            same("", meta.getTableName(5));
        }
        run(connection, "DROP TABLE j_meta");
    }

    /** What BI tools find joins by; UNIQUE and foreign keys are told though they are not enforced. */
    static void keysMetadata(Connection connection) throws SQLException {
        DatabaseMetaData meta = connection.getMetaData();
        run(connection, "CREATE SCHEMA j_keys");
        run(connection, "CREATE TABLE j_keys.customer (id int PRIMARY KEY, country varchar, \"Tax Id\" varchar NOT NULL, "
                + "CONSTRAINT tax UNIQUE (country, \"Tax Id\"))");
        run(connection, "CREATE TABLE j_keys.orders (id int PRIMARY KEY, customer int REFERENCES j_keys.customer ON DELETE "
                + "CASCADE, country varchar, tax varchar, FOREIGN KEY (tax, country) REFERENCES j_keys.customer "
                + "(\"Tax Id\", country) ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED)");
        String[] of = {"PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_SCHEM", "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ",
                "FK_NAME", "PK_NAME", "UPDATE_RULE", "DELETE_RULE", "DEFERRABILITY"};
        String composite = "orders_tax_country_fkey tax " + DatabaseMetaData.importedKeySetNull + " "
                + DatabaseMetaData.importedKeyNoAction + " " + DatabaseMetaData.importedKeyInitiallyDeferred;
        List<String> keys = List.of(
                "customer id j_keys orders customer 1 orders_customer_fkey customer_pkey "
                        + DatabaseMetaData.importedKeyNoAction + " " + DatabaseMetaData.importedKeyCascade + " "
                        + DatabaseMetaData.importedKeyNotDeferrable,
                "customer Tax Id j_keys orders tax 1 " + composite,
                "customer country j_keys orders country 2 " + composite);
        same(keys, strings(meta.getImportedKeys(null, "j_keys", "orders"), of));
        same(keys, strings(meta.getExportedKeys(null, "j_keys", "customer"), of));
        same(keys, strings(meta.getCrossReference(null, "j_keys", "customer", null, "j_keys", "orders"), of));
        same(List.of(), strings(meta.getImportedKeys(null, "j_keys", "customer"), of));
        same(List.of("customer_pkey f id 1", "tax f country 1", "tax f Tax Id 2"),
                strings(meta.getIndexInfo(null, "j_keys", "customer", true, false), "INDEX_NAME", "NON_UNIQUE", "COLUMN_NAME",
                        "ORDINAL_POSITION"));
        same(List.of("id"), strings(meta.getPrimaryKeys(null, "j_keys", "customer"), "COLUMN_NAME"));
        run(connection, "DROP SCHEMA j_keys CASCADE");
    }

    static void databaseMetadata(Connection connection) throws SQLException {
        DatabaseMetaData meta = connection.getMetaData();
        same("PostgreSQL", meta.getDatabaseProductName());
        run(connection, "CREATE SCHEMA j_schema");
        run(connection, "CREATE TABLE j_schema.people (id int, name varchar NOT NULL, amount numeric(10,2), tags int[], "
                + "PRIMARY KEY (id))");
        run(connection, "CREATE VIEW j_schema.names AS SELECT name FROM j_schema.people");
        run(connection, "CREATE MATERIALIZED VIEW j_schema.totals AS SELECT name, count(*) AS n FROM j_schema.people "
                + "GROUP BY name");
        run(connection, "COMMENT ON TABLE j_schema.people IS 'who is who'");
        run(connection, "COMMENT ON COLUMN j_schema.people.name IS 'as on the door'");
        same(true, strings(meta.getSchemas(), "TABLE_SCHEM").containsAll(List.of("public", "j_schema")));
        same(List.of("j_schema"), strings(meta.getSchemas(null, "j\\_schema"), "TABLE_SCHEM"));
        same(true, strings(meta.getCatalogs(), "TABLE_CAT").contains("dev"));
        same(List.of("totals MATERIALIZED VIEW", "people TABLE", "names VIEW"),
                strings(meta.getTables(null, "j_schema", "%", new String[] {"TABLE", "VIEW", "MATERIALIZED VIEW"}),
                        "TABLE_NAME", "TABLE_TYPE"));
        same(List.of("who is who"), strings(meta.getTables(null, "j_schema", "people", null), "REMARKS"));
        same(List.of("id int4 1 NO", "name varchar 2 NO", "amount numeric 3 YES", "tags _int4 4 YES"),
                strings(meta.getColumns(null, "j_schema", "people", "%"), "COLUMN_NAME", "TYPE_NAME", "ORDINAL_POSITION",
                        "IS_NULLABLE"));
        same(List.of("10 2"),
                strings(meta.getColumns(null, "j_schema", "people", "amount"), "COLUMN_SIZE", "DECIMAL_DIGITS"));
        same(List.of("as on the door"), strings(meta.getColumns(null, "j_schema", "people", "name"), "REMARKS"));
        same(List.of("n int8"), strings(meta.getColumns(null, "j_schema", "totals", "n"), "COLUMN_NAME", "TYPE_NAME"));
        same(List.of("id 1 people_pkey"), strings(meta.getPrimaryKeys(null, "j_schema", "people"), "COLUMN_NAME", "KEY_SEQ",
                "PK_NAME"));
        same(List.of("people_pkey id"), strings(meta.getIndexInfo(null, "j_schema", "people", false, false), "INDEX_NAME",
                "COLUMN_NAME"));
        same(List.of(), strings(meta.getImportedKeys(null, "j_schema", "people"), "PKTABLE_NAME"));
        same(List.of(), strings(meta.getExportedKeys(null, "j_schema", "people"), "PKTABLE_NAME"));
        same(List.of(), strings(meta.getCrossReference(null, null, "people", null, null, "names"), "PKTABLE_NAME"));
        same(true, strings(meta.getTablePrivileges(null, "j_schema", "people"), "GRANTEE", "PRIVILEGE")
                .contains("root SELECT"));
        strings(meta.getColumnPrivileges(null, "j_schema", "people", "%"), "GRANTEE");
        same(List.of("id"), strings(meta.getBestRowIdentifier(null, "j_schema", "people", 0, true), "COLUMN_NAME"));
        strings(meta.getVersionColumns(null, "j_schema", "people"), "COLUMN_NAME");
        strings(meta.getProcedures(null, "j_schema", "%"), "PROCEDURE_NAME");
        strings(meta.getProcedureColumns(null, "j_schema", "%", "%"), "PROCEDURE_NAME");
        strings(meta.getFunctions(null, "j_schema", "%"), "FUNCTION_NAME");
        strings(meta.getFunctionColumns(null, "j_schema", "%", "%"), "FUNCTION_NAME");
        strings(meta.getUDTs(null, "j_schema", "%", null), "TYPE_NAME");
        strings(meta.getClientInfoProperties(), "NAME");
        same(true, strings(meta.getTableTypes(), "TABLE_TYPE").contains("TABLE"));
        List<String> types = strings(meta.getTypeInfo(), "TYPE_NAME");
        same(true, types.containsAll(List.of("int4", "varchar", "numeric", "timestamptz", "_int4")));
        same(true, meta.getMaxColumnNameLength() > 0);
        same(true, meta.getSQLKeywords().length() > 0);
        run(connection, "DROP SCHEMA j_schema CASCADE");
    }

    static void maxRows(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setMaxRows(3);
            same(3, rows(statement.executeQuery("SELECT i FROM generate_series(1, 1000) s (i)")).size());
        }
    }

    static void fetchSize(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        // Portals that outlive a Sync need a block; Sparkwave has one where it begins READ ONLY.
        connection.setReadOnly(true);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(100);
            long sum = 0;
            try (ResultSet result = statement.executeQuery("SELECT i, i::varchar FROM generate_series(1, 5000) s (i)")) {
                while (result.next()) {
                    sum += result.getLong(1);
                }
            }
            same(12502500L, sum);
        }
        connection.commit();
    }

    static void batches(Connection connection) throws SQLException {
        run(connection, "CREATE TABLE j_batch (k int PRIMARY KEY, v varchar)");
        for (Connection own : List.of(connection, connect("reWriteBatchedInserts", "true"))) {
            try (PreparedStatement insert = own.prepareStatement("INSERT INTO j_batch VALUES (?, ?)")) {
                for (int i = 0; i < 20; i++) {
                    insert.setInt(1, i);
                    insert.setString(2, "v" + i);
                    insert.addBatch();
                }
                same(20, insert.executeBatch().length);
            }
            same(List.of(List.of(20L)), query(own, "SELECT count(*) FROM j_batch"));
            if (own == connection) {
                run(own, "DELETE FROM j_batch");
            }
        }
        try (Statement statement = connection.createStatement()) {
            statement.addBatch("UPDATE j_batch SET v = 'x' WHERE k < 5");
            statement.addBatch("DELETE FROM j_batch WHERE k >= 10");
            same("[5, 10]", Arrays.toString(statement.executeBatch()));
            statement.addBatch("SELEC");
            try {
                statement.executeBatch();
                throw new AssertionError("no error");
            } catch (BatchUpdateException error) {
                same("42601", error.getSQLState());
            }
        }
        run(connection, "DROP TABLE j_batch");
    }

    static void generatedKeys(Connection connection) throws SQLException {
        run(connection, "CREATE TABLE j_keys (k int PRIMARY KEY, v varchar)");
        try (PreparedStatement insert =
                connection.prepareStatement("INSERT INTO j_keys VALUES (?, ?)", new String[] {"k"})) {
            insert.setInt(1, 7);
            insert.setString(2, "a");
            same(1, insert.executeUpdate());
            same(List.of(List.of(7)), rows(insert.getGeneratedKeys()));
        }
        try (Statement statement = connection.createStatement()) {
            same(1, statement.executeUpdate("INSERT INTO j_keys VALUES (8, 'b')", Statement.RETURN_GENERATED_KEYS));
            same(List.of(List.of(8, "b")), rows(statement.getGeneratedKeys()));
        }
        run(connection, "DROP TABLE j_keys");
    }

    static void severalResults(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            same(true, statement.execute("SELECT 1; SELECT 'a' AS x"));
            same(List.of(List.of(1)), rows(statement.getResultSet()));
            same(true, statement.getMoreResults());
            same(List.of(List.of("a")), rows(statement.getResultSet()));
        }
    }

    static void blocks(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        run(connection, "CREATE TABLE j_block (k int PRIMARY KEY)");
        connection.commit();
        run(connection, "INSERT INTO j_block VALUES (1)");
        connection.commit();
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        same(List.of(List.of(1L)), query(connection, "SELECT count(*) FROM j_block"));
        connection.rollback();
        connection.setReadOnly(true);
        try {
            run(connection, "INSERT INTO j_block VALUES (2)");
            throw new AssertionError("no error");
        } catch (SQLException error) {
            same("25006", error.getSQLState());
        }
        connection.rollback();
        connection.setReadOnly(false);
        run(connection, "DROP TABLE j_block");
        connection.commit();
    }

    static void cancel(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            ScheduledExecutorService later = Executors.newSingleThreadScheduledExecutor();
            later.schedule(() -> {
                statement.cancel();
                return null;
            }, 500, TimeUnit.MILLISECONDS);
            expectCancelled(statement);
            later.shutdown();
        }
        same(List.of(List.of(1)), query(connection, "SELECT 1"));
    }

    static void queryTimeout(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            expectCancelled(statement);
        }
        same(List.of(List.of(1)), query(connection, "SELECT 1"));
    }

    static void expectCancelled(Statement statement) throws SQLException {
        try {
            statement.executeQuery(ENDLESS);
            throw new AssertionError("not cancelled");
        } catch (SQLException error) {
            same("57014", error.getSQLState());
        }
    }

    static void errors(Connection connection) throws SQLException {
        String[][] expected = {
            {"SELECT * FROM nowhere_to_be_found", "42P01"}, {"SELECT nope FROM pg_class", "42703"},
            {"SELECT 1/0", "22012"}, {"SELEC", "42601"}, {"SELECT nofunction(1)", "42883"},
        };
        for (String[] one : expected) {
            try {
                query(connection, one[0]);
                throw new AssertionError("no error: " + one[0]);
            } catch (SQLException error) {
                same(one[1], error.getSQLState());
            }
            same(List.of(List.of(1)), query(connection, "SELECT 1"));
        }
    }

    static void copy(Connection connection) throws Exception {
        run(connection, "CREATE TABLE j_copy (k int PRIMARY KEY, v varchar)");
        var manager = connection.unwrap(org.postgresql.PGConnection.class).getCopyAPI();
        same(2L, manager.copyIn("COPY j_copy FROM STDIN", new java.io.StringReader("1\ta\n2\tb\n")));
        var out = new java.io.StringWriter();
        same(2L, manager.copyOut("COPY (SELECT * FROM j_copy ORDER BY k) TO STDOUT (FORMAT csv)", out));
        same("1,a\n2,b\n", out.toString());
        run(connection, "DROP TABLE j_copy");
    }
}
