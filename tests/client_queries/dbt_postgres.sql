-- Catalog queries that dbt-core 1.12.6 with dbt-postgres 1.11.0 sends, recorded in front of PostgreSQL 15.18 (and a server that called itself 13.14).
-- `-- @number action` precedes each; OIDs in them are those of the relations in test_system_views.py.

-- @3 seed
/* {"app": "dbt", "dbt_version": "1.12.6", "profile_name": "farm", "target_name": "dev", "connection_name": "list_dbtdb"} */

    select distinct nspname from pg_namespace;

-- @6 seed
/* {"app": "dbt", "dbt_version": "1.12.6", "profile_name": "farm", "target_name": "dev", "connection_name": "list_dbtdb_dbt_s_dbt_test__audit"} */
select
      'dbtdb' as database,
      tablename as name,
      schemaname as schema,
      'table' as type
    from pg_tables
    where schemaname ilike 'dbt_s_dbt_test__audit'
    union all
    select
      'dbtdb' as database,
      viewname as name,
      schemaname as schema,
      'view' as type
    from pg_views
    where schemaname ilike 'dbt_s_dbt_test__audit'
    union all
    select
      'dbtdb' as database,
      matviewname as name,
      schemaname as schema,
      'materialized_view' as type
    from pg_matviews
    where schemaname ilike 'dbt_s_dbt_test__audit'
    union all
    select distinct
     'dbtdb' as database,
     proname as name,
     ns.nspname as schema,
     'function' as type
    from pg_proc
     join pg_namespace as ns on pronamespace = ns.oid
    where ns.nspname ilike 'dbt_s_dbt_test__audit';

-- @7 seed
/* {"app": "dbt", "dbt_version": "1.12.6", "profile_name": "farm", "target_name": "dev", "connection_name": "list_dbtdb_dbt_s"} */
select
      'dbtdb' as database,
      tablename as name,
      schemaname as schema,
      'table' as type
    from pg_tables
    where schemaname ilike 'dbt_s'
    union all
    select
      'dbtdb' as database,
      viewname as name,
      schemaname as schema,
      'view' as type
    from pg_views
    where schemaname ilike 'dbt_s'
    union all
    select
      'dbtdb' as database,
      matviewname as name,
      schemaname as schema,
      'materialized_view' as type
    from pg_matviews
    where schemaname ilike 'dbt_s'
    union all
    select distinct
     'dbtdb' as database,
     proname as name,
     ns.nspname as schema,
     'function' as type
    from pg_proc
     join pg_namespace as ns on pronamespace = ns.oid
    where ns.nspname ilike 'dbt_s';

-- @9 seed
/* {"app": "dbt", "dbt_version": "1.12.6", "profile_name": "farm", "target_name": "dev", "connection_name": "list_dbtdb_dbt_s_custom"} */
select
      'dbtdb' as database,
      tablename as name,
      schemaname as schema,
      'table' as type
    from pg_tables
    where schemaname ilike 'dbt_s_custom'
    union all
    select
      'dbtdb' as database,
      viewname as name,
      schemaname as schema,
      'view' as type
    from pg_views
    where schemaname ilike 'dbt_s_custom'
    union all
    select
      'dbtdb' as database,
      matviewname as name,
      schemaname as schema,
      'materialized_view' as type
    from pg_matviews
    where schemaname ilike 'dbt_s_custom'
    union all
    select distinct
     'dbtdb' as database,
     proname as name,
     ns.nspname as schema,
     'function' as type
    from pg_proc
     join pg_namespace as ns on pronamespace = ns.oid
    where ns.nspname ilike 'dbt_s_custom';

-- @10 seed
/* {"app": "dbt", "dbt_version": "1.12.6", "profile_name": "farm", "target_name": "dev", "connection_name": "master"} */
select distinct
        dependent_namespace.nspname as dependent_schema,
        dependent_class.relname as dependent_name,
        referenced_namespace.nspname as referenced_schema,
        referenced_class.relname as referenced_name

    -- Query for views: views are entries in pg_class with an entry in pg_rewrite, but we avoid
    -- a seq scan on pg_rewrite by leveraging the fact there is an "internal" row in pg_depend for
    -- the view...
    from pg_class as dependent_class
    join pg_namespace as dependent_namespace on dependent_namespace.oid = dependent_class.relnamespace
    join pg_depend as dependent_depend on dependent_depend.refobjid = dependent_class.oid
        and dependent_depend.classid = 'pg_rewrite'::regclass
        and dependent_depend.refclassid = 'pg_class'::regclass
        and dependent_depend.deptype = 'i'

    -- ... and via pg_depend (that has a row per column, hence the need for "distinct" above, and
    -- making sure to exclude the internal row to avoid a view appearing to depend on itself)...
    join pg_depend as joining_depend on joining_depend.objid = dependent_depend.objid
        and joining_depend.classid = 'pg_rewrite'::regclass
        and joining_depend.refclassid = 'pg_class'::regclass
        and joining_depend.refobjid != dependent_depend.refobjid

    -- ... we can find the tables they query from in pg_class, but excluding system tables. Note we
    -- don't need need to exclude _dependent_ system tables, because they only query from other
    -- system tables, and so are automatically excluded by excluding _referenced_ system tables
    join pg_class as referenced_class on referenced_class.oid = joining_depend.refobjid
    join pg_namespace as referenced_namespace on referenced_namespace.oid = referenced_class.relnamespace
        and referenced_namespace.nspname != 'information_schema'
        and referenced_namespace.nspname not like 'pg\_%'

    order by
        dependent_schema, dependent_name, referenced_schema, referenced_name;

-- @57 run mv (2nd)
/* {"app": "dbt", "dbt_version": "1.12.6", "profile_name": "farm", "target_name": "dev", "node_id": "model.farm.mv"} */


    select
        i.relname                                   as name,
        m.amname                                    as method,
        ix.indisunique                              as "unique",
        array_to_string(array_agg(a.attname), ',')  as column_names
    from pg_index ix
    join pg_class i
        on i.oid = ix.indexrelid
    join pg_am m
        on m.oid=i.relam
    join pg_class t
        on t.oid = ix.indrelid
    join pg_namespace n
        on n.oid = t.relnamespace
    join pg_attribute a
        on a.attrelid = t.oid
        and a.attnum = ANY(ix.indkey)
    where t.relname = 'mv'
      and n.nspname = 'dbt_s'
      and t.relkind in ('r', 'm')
    group by 1, 2, 3
    order by 1, 2, 3;

-- @106 docs generate
/* {"app": "dbt", "dbt_version": "1.12.6", "profile_name": "farm", "target_name": "dev", "connection_name": "dbtdb.information_schema"} */




    select
        'dbtdb' as table_database,
        sch.nspname as table_schema,
        tbl.relname as table_name,
        case tbl.relkind
            when 'v' then 'VIEW'
            when 'm' then 'MATERIALIZED VIEW'
            else 'BASE TABLE'
        end as table_type,
        tbl_desc.description as table_comment,
        col.attname as column_name,
        col.attnum as column_index,
        pg_catalog.format_type(col.atttypid, col.atttypmod) as column_type,
        col_desc.description as column_comment,
        pg_get_userbyid(tbl.relowner) as table_owner

    from pg_catalog.pg_namespace sch
    join pg_catalog.pg_class tbl on tbl.relnamespace = sch.oid
    join pg_catalog.pg_attribute col on col.attrelid = tbl.oid
    left outer join pg_catalog.pg_description tbl_desc on (tbl_desc.objoid = tbl.oid and tbl_desc.objsubid = 0)
    left outer join pg_catalog.pg_description col_desc on (col_desc.objoid = tbl.oid and col_desc.objsubid = col.attnum)
    where ((upper(sch.nspname) = upper('dbt_s_custom') and
           upper(tbl.relname) = upper('agg')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('tb')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('contr')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('v')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('inc_merge')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('raw')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('snap_ts')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('snap')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('srcm')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('inc_delete_insert')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('mv')) or (upper(sch.nspname) = upper('dbt_s') and
           upper(tbl.relname) = upper('inc_append')) or (upper(sch.nspname) = upper('dbt_s_dbt_test__audit') and
           upper(tbl.relname) = upper('singular')))
      and not pg_is_other_temp_schema(sch.oid) -- not a temporary schema belonging to another session
      and tbl.relpersistence in ('p', 'u') -- [p]ermanent table or [u]nlogged table. Exclude [t]emporary tables
      and tbl.relkind in ('r', 'v', 'f', 'p', 'm') -- o[r]dinary table, [v]iew, [f]oreign table, [p]artitioned table, [m]aterialized view. Other values are [i]ndex, [S]equence, [c]omposite type, [t]OAST table
      and col.attnum > 0 -- negative numbers are used for system columns such as oid
      and not col.attisdropped -- column as not been dropped

    order by
        sch.nspname,
        tbl.relname,
        col.attnum;
