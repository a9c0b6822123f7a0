CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name varchar, r_comment varchar);

CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name varchar, n_regionkey int, n_comment varchar);

CREATE TABLE supplier (
    s_suppkey int PRIMARY KEY,
    s_name varchar,
    s_address varchar,
    s_nationkey int,
    s_phone varchar,
    s_acctbal numeric(15, 2),
    s_comment varchar
);

CREATE TABLE customer (
    c_custkey int PRIMARY KEY,
    c_name varchar,
    c_address varchar,
    c_nationkey int,
    c_phone varchar,
    c_acctbal numeric(15, 2),
    c_mktsegment varchar,
    c_comment varchar
);

CREATE TABLE part (
    p_partkey int PRIMARY KEY,
    p_name varchar,
    p_mfgr varchar,
    p_brand varchar,
    p_type varchar,
    p_size int,
    p_container varchar,
    p_retailprice numeric(15, 2),
    p_comment varchar
);

CREATE TABLE partsupp (
    ps_partkey int,
    ps_suppkey int,
    ps_availqty int,
    ps_supplycost numeric(15, 2),
    ps_comment varchar,
    PRIMARY KEY (ps_partkey, ps_suppkey)
);

CREATE TABLE orders (
    o_orderkey bigint PRIMARY KEY,
    o_custkey int,
    o_orderstatus varchar,
    o_totalprice numeric(15, 2),
    o_orderdate date,
    o_orderpriority varchar,
    o_clerk varchar,
    o_shippriority int,
    o_comment varchar
);

CREATE TABLE lineitem (
    l_orderkey bigint,
    l_partkey int,
    l_suppkey int,
    l_linenumber int,
    l_quantity numeric(15, 2),
    l_extendedprice numeric(15, 2),
    l_discount numeric(15, 2),
    l_tax numeric(15, 2),
    l_returnflag varchar,
    l_linestatus varchar,
    l_shipdate date,
    l_commitdate date,
    l_receiptdate date,
    l_shipinstruct varchar,
    l_shipmode varchar,
    l_comment varchar,
    PRIMARY KEY (l_orderkey, l_linenumber)
);
