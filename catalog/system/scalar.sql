-- Postgres' scalar functions that DuckDB lacks or defines differently; planner/functions/scalar_functions.py directs
-- calls here. A macro's variant is chosen by the number of arguments and, where declared, by their types. A numeric
-- argument is declared DECIMAL(38,10), the storage type of an unconstrained numeric. No macro calls error(), which TRY
-- cannot catch.

-- Raises an error in PostgreSQL's words, which catalog/lake/translation.py reads; TRY cannot catch DuckDB's error().
CREATE OR REPLACE MACRO pg.raise(sqlstate, message) AS CAST('!' || sqlstate || ' ' || message AS INTEGER);
-- The same with PostgreSQL's detail and hint, which may be empty.
CREATE OR REPLACE MACRO pg.raise_with(sqlstate, message, detail, hint) AS
    pg.raise(sqlstate, message || chr(31) || detail || chr(31) || hint);
CREATE OR REPLACE MACRO pg._overflow() AS pg.raise('22003', 'value out of range: overflow')::DOUBLE;
CREATE OR REPLACE MACRO pg._underflow() AS pg.raise('22003', 'value out of range: underflow')::DOUBLE;
-- A float that is computed from finite ones, and that cannot be zero.
CREATE OR REPLACE MACRO pg._finite(y) AS CASE WHEN isinf(y) THEN pg._overflow() WHEN y = 0 THEN pg._underflow() ELSE y END;

-- The value of a scalar subquery with n rows.
CREATE OR REPLACE MACRO pg._only(value, n) AS
    [value][if(n > 1, pg.raise('21000', 'more than one row returned by a subquery used as an expression'), 1)];

-- Numbers. As in Postgres, float functions of numerics return numerics.
CREATE OR REPLACE MACRO pg.round
    (x BIGINT) AS x::DOUBLE, (x DOUBLE) AS round_even(x, 0), (x DECIMAL(38,10)) AS round(x)::DECIMAL(38,10),
    (x DECIMAL(38,10), n) AS round(x, n);
CREATE OR REPLACE MACRO pg.trunc
    (x BIGINT) AS x::DOUBLE, (x DOUBLE) AS trunc(x), (x DECIMAL(38,10)) AS trunc(x)::DECIMAL(38,10),
    (x DECIMAL(38,10), n) AS trunc(x, n);
-- x rounded to n places, which differ by row: `units` are the powers of ten of x's type, DECIMAL(38,s), largest first.
CREATE OR REPLACE MACRO pg._units(s) AS list_transform(range(s - 37, s + 1), lambda n:
    if(n < 1, '1' || repeat('0', -n), '0.' || repeat('0', n - 1) || '1'));
CREATE OR REPLACE MACRO pg._with_unit(x, n, s, units) AS
    [{x: x, n: n::BIGINT, u: units[if(n < s - 37, 1, if(n > s, 38, n::BIGINT + 38 - s))]}];
CREATE OR REPLACE MACRO pg._up_by(x, u) AS if(abs(x % u) >= u - abs(x % u), if(x < 0, -u, u), x - x);
-- Where the unit has a digit too many, half of it and more overflow, as do two of them.
CREATE OR REPLACE MACRO pg.round_by(x, n, s, units) AS list_transform(pg._with_unit(x, n, s, units), lambda _v: CASE
    WHEN _v['n'] >= s THEN _v['x']
    WHEN _v['n'] > s - 38 THEN _v['x'] - _v['x'] % _v['u'] + pg._up_by(_v['x'], _v['u'])
    WHEN _v['n'] = s - 38 AND abs(_v['x']) - _v['u'] >= 4 * _v['u'] THEN _v['x'] + _v['x']
    WHEN _v['n'] IS NOT NULL THEN _v['x'] - _v['x'] END)[1];
CREATE OR REPLACE MACRO pg.trunc_by(x, n, s, units) AS list_transform(pg._with_unit(x, n, s, units), lambda _v: CASE
    WHEN _v['n'] >= s THEN _v['x'] WHEN _v['n'] > s - 38 THEN _v['x'] - _v['x'] % _v['u']
    WHEN _v['n'] IS NOT NULL THEN _v['x'] - _v['x'] END)[1];
CREATE OR REPLACE MACRO pg.ceil
    (x BIGINT) AS x::DOUBLE, (x DOUBLE) AS ceil(x), (x DECIMAL(38,10)) AS ceil(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.floor
    (x BIGINT) AS x::DOUBLE, (x DOUBLE) AS floor(x), (x DECIMAL(38,10)) AS floor(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.sign
    (x BIGINT) AS sign(x)::DOUBLE, (x DOUBLE) AS CASE WHEN isnan(x) THEN 0 ELSE sign(x)::DOUBLE END,
    (x DECIMAL(38,10)) AS sign(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.sqrt
    (x BIGINT) AS sqrt(x::DOUBLE), (x DOUBLE) AS sqrt(x), (x DECIMAL(38,10)) AS sqrt(x::DOUBLE)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg._exp(x) AS if(isinf(x), exp(x), pg._finite(exp(x)));
CREATE OR REPLACE MACRO pg._as_numeric(y) AS
    if(isinf(y), pg.raise('22003', 'value overflows numeric format')::DOUBLE, y);
CREATE OR REPLACE MACRO pg.exp_of_numeric(x) AS pg._as_numeric(exp(x));
CREATE OR REPLACE MACRO pg.exp
    (x BIGINT) AS pg._exp(x::DOUBLE), (x DOUBLE) AS pg._exp(x),
    (x DECIMAL(38,10)) AS pg.exp_of_numeric(x::DOUBLE)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.ln
    (x BIGINT) AS ln(x::DOUBLE), (x DOUBLE) AS ln(x), (x DECIMAL(38,10)) AS ln(x::DOUBLE)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.log10
    (x BIGINT) AS log10(x::DOUBLE), (x DOUBLE) AS log10(x),
    (x DECIMAL(38,10)) AS log10(x::DOUBLE)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.log
    (x BIGINT) AS log10(x::DOUBLE), (x DOUBLE) AS log10(x), (x DECIMAL(38,10)) AS log10(x::DOUBLE)::DECIMAL(38,10),
    (b, x) AS format('{:.16g}', ln(x::DOUBLE) / ln(b::DOUBLE))::DECIMAL(38,19);
CREATE OR REPLACE MACRO pg.log_of_numeric (x) AS log10(x), (b, x) AS ln(x) / ln(b);
CREATE OR REPLACE MACRO pg._raised(x, y, power) AS
    CASE WHEN x = 0 AND y < 0 THEN pg.raise('2201F', 'zero raised to a negative power is undefined')::DOUBLE
         WHEN x < 0 AND isfinite(y) AND y <> trunc(y)
         THEN pg.raise('2201F', 'a negative number raised to a non-integer power yields a complex result')::DOUBLE
         ELSE power END;
CREATE OR REPLACE MACRO pg._power(x, y) AS
    pg._raised(x, y, if(isfinite(x) AND isfinite(y) AND x <> 0, pg._finite(pow(x, y)), pow(x, y)));
CREATE OR REPLACE MACRO pg.power_of_numeric(x, y) AS pg._as_numeric(pg._raised(x, y, pow(x, y)));
CREATE OR REPLACE MACRO pg.power
    (x BIGINT, y BIGINT) AS pg._power(x::DOUBLE, y::DOUBLE), (x DOUBLE, y DOUBLE) AS pg._power(x, y),
    (x DECIMAL(38,10), y DECIMAL(38,10)) AS
        pg.power_of_numeric(x::DOUBLE, y::DOUBLE)::DECIMAL(38,10);
-- Numerics as integers in units of 10^-10: the quotient of two such integers is that of the numerics.
CREATE OR REPLACE MACRO pg._unscaled(x) AS replace(x::DECIMAL(38,10)::VARCHAR, '.', '')::HUGEINT;
CREATE OR REPLACE MACRO pg.div(x, y) AS
    (pg._unscaled(x) // if(y = 0 AND x IS NOT NULL, pg.raise('22012', 'division by zero'), pg._unscaled(y)))
    ::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg._unscaled_quotient(x) AS replace(x::DECIMAL(38,19)::VARCHAR, '.', '')::HUGEINT;
CREATE OR REPLACE MACRO pg.div_quotients(x, y) AS
    (pg._unscaled_quotient(x)
     // if(y = 0 AND x IS NOT NULL, pg.raise('22012', 'division by zero'), pg._unscaled_quotient(y)))
    ::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg._gcd_of_units(x, y) AS
    gcd(replace(x::DECIMAL(38,19)::VARCHAR, '.', '')::HUGEINT, replace(y::DECIMAL(38,19)::VARCHAR, '.', '')::HUGEINT);
CREATE OR REPLACE MACRO pg.gcd_of_numerics(x, y) AS
    pg._gcd_of_units(x, y)::DECIMAL(38,0) * '0.0000000000000000001'::DECIMAL(19,19);
CREATE OR REPLACE MACRO pg.lcm_of_numerics(x, y) AS if(x * 0 = y OR x = y * 0, 0::DECIMAL(38,19), abs(y)::DECIMAL(38,19)
    * (replace(abs(x)::DECIMAL(38,19)::VARCHAR, '.', '')::HUGEINT // pg._gcd_of_units(x, y))::DECIMAL(19,0));
CREATE OR REPLACE MACRO pg.gcd(x INTEGER, y INTEGER) AS gcd(x, y)::INTEGER, (x BIGINT, y BIGINT) AS gcd(x, y)::BIGINT,
    (x DECIMAL(38,19), y DECIMAL(38,19)) AS pg.gcd_of_numerics(x, y);
CREATE OR REPLACE MACRO pg.lcm(x INTEGER, y INTEGER) AS lcm(x, y)::INTEGER, (x BIGINT, y BIGINT) AS lcm(x, y)::BIGINT,
    (x DECIMAL(38,19), y DECIMAL(38,19)) AS pg.lcm_of_numerics(x, y);
CREATE OR REPLACE MACRO pg.cot(x) AS if(x = 0, 'Infinity'::DOUBLE, cot(x));
CREATE OR REPLACE MACRO pg.acosh(x) AS if(x < 1, pg.raise('22003', 'input is out of range')::DOUBLE, acosh(x));
CREATE OR REPLACE MACRO pg._of_unit(x) AS
    if(abs(x) > 1 AND NOT isnan(x), pg.raise('22003', 'input is out of range')::DOUBLE, x);
CREATE OR REPLACE MACRO pg.asin(x DOUBLE) AS asin(pg._of_unit(x));
CREATE OR REPLACE MACRO pg.acos(x DOUBLE) AS acos(pg._of_unit(x));
CREATE OR REPLACE MACRO pg.atanh(x DOUBLE) AS if(x = -1, '-Infinity'::DOUBLE, atanh(pg._of_unit(x)));
-- At zero and the negative integers is a pole.
CREATE OR REPLACE MACRO pg._is_pole(x) AS x <= 0 AND (x = trunc(x) OR x = '-Infinity'::DOUBLE);
CREATE OR REPLACE MACRO pg._gamma(x) AS CASE WHEN pg._is_pole(x) THEN pg._overflow()
    WHEN isfinite(x) THEN pg._finite(gamma(x)) ELSE x END;
CREATE OR REPLACE MACRO pg._lgamma(x) AS
    CASE WHEN isinf(x) THEN abs(x) WHEN pg._is_pole(x) THEN pg._overflow()
         WHEN isinf(lgamma(x)) THEN pg._overflow() ELSE lgamma(x) END;
CREATE OR REPLACE MACRO pg.gamma(x DOUBLE) AS pg._gamma(x);
CREATE OR REPLACE MACRO pg.lgamma(x DOUBLE) AS pg._lgamma(x);
-- DuckDB multiplies by another constant, which gives another last digit.
CREATE OR REPLACE MACRO pg.degrees(x) AS x::DOUBLE / 0.017453292519943295::DOUBLE;
-- Trigonometry in degrees, exact where the result is, as in PostgreSQL: by the angle within the first quarter.
CREATE OR REPLACE MACRO pg._sind_to_30(x) AS sin(radians(x)) / sin(radians(30)) / 2;
CREATE OR REPLACE MACRO pg._cosd_to_60(x) AS 1 - (1 - cos(radians(x))) / (1 - cos(radians(60))) / 2;
CREATE OR REPLACE MACRO pg._sind_of_quarter(x) AS if(x <= 30, pg._sind_to_30(x), pg._cosd_to_60(90 - x));
CREATE OR REPLACE MACRO pg._cosd_of_quarter(x) AS if(x <= 60, pg._cosd_to_60(x), pg._sind_to_30(90 - x));
CREATE OR REPLACE MACRO pg._turn(x) AS
    if(isinf(x), pg.raise('22003', 'input is out of range')::DOUBLE, abs(x) % 360);
CREATE OR REPLACE MACRO pg._half(x) AS if(pg._turn(x) > 180, 360 - pg._turn(x), pg._turn(x));
CREATE OR REPLACE MACRO pg._quarter(x) AS if(pg._half(x) > 90, 180 - pg._half(x), pg._half(x));
CREATE OR REPLACE MACRO pg.sind(x) AS
    if((x < 0) <> (pg._turn(x) > 180), -1.0::DOUBLE, 1.0::DOUBLE) * pg._sind_of_quarter(pg._quarter(x));
CREATE OR REPLACE MACRO pg.cosd(x) AS
    if(pg._half(x) > 90, -1.0::DOUBLE, 1.0::DOUBLE) * pg._cosd_of_quarter(pg._quarter(x));
CREATE OR REPLACE MACRO pg.tand(x) AS
    if(((x < 0) <> (pg._turn(x) > 180)) <> (pg._half(x) > 90), -1.0::DOUBLE, 1.0::DOUBLE)
    * if(pg._quarter(x) = 90, 'Infinity'::DOUBLE,
         pg._sind_of_quarter(pg._quarter(x)) / pg._cosd_of_quarter(pg._quarter(x)))
    / (pg._sind_of_quarter(45.0::DOUBLE) / pg._cosd_of_quarter(45.0::DOUBLE)) + 0;
CREATE OR REPLACE MACRO pg.cotd(x) AS
    if(((x < 0) <> (pg._turn(x) > 180)) <> (pg._half(x) > 90), -1.0::DOUBLE, 1.0::DOUBLE)
    * if(pg._quarter(x) = 0, 'Infinity'::DOUBLE,
         pg._cosd_of_quarter(pg._quarter(x)) / pg._sind_of_quarter(pg._quarter(x)))
    / (pg._cosd_of_quarter(45.0::DOUBLE) / pg._sind_of_quarter(45.0::DOUBLE)) + 0;
CREATE OR REPLACE MACRO pg._asind_of_quarter(x) AS
    if(x <= 0.5, asin(x) / asin(0.5::DOUBLE) * 30, 90 - acos(x) / acos(0.5::DOUBLE) * 60);
CREATE OR REPLACE MACRO pg.asind(x) AS
    if(x < 0, -pg._asind_of_quarter(-pg._of_unit(x)), pg._asind_of_quarter(pg._of_unit(x)));
CREATE OR REPLACE MACRO pg.acosd(x) AS
    CASE WHEN x < 0 THEN 90 + pg._asind_of_quarter(-pg._of_unit(x))
         WHEN x <= 0.5 THEN 90 - asin(x) / asin(0.5::DOUBLE) * 30
         ELSE acos(pg._of_unit(x)) / acos(0.5::DOUBLE) * 60 END;
CREATE OR REPLACE MACRO pg.atand(x) AS atan(x) / atan(1.0::DOUBLE) * 45;
CREATE OR REPLACE MACRO pg.atan2d(y, x) AS atan2(y, x) / atan(1.0::DOUBLE) * 45;
CREATE OR REPLACE MACRO pg.factorial(n) AS
    CASE WHEN n < 0 THEN pg.raise('22003', 'factorial of a negative number is undefined')::DECIMAL(38,10)
         WHEN n > 27 THEN pg.raise('22003', 'value overflows numeric format')::DECIMAL(38,10)
         ELSE factorial(n::INTEGER)::DECIMAL(38,10) END;
-- The number of digits after the point without trailing zeros.
CREATE OR REPLACE MACRO pg.min_scale(x DECIMAL(38,19)) AS
    length(rtrim(split_part(x::DECIMAL(38,19)::VARCHAR, '.', 2), '0'))::INTEGER;
CREATE OR REPLACE MACRO pg.trim_scale(x DECIMAL(38,19)) AS x;
-- The digits that a numeric is written with: those of its type, or without trailing zeros if its type has none.
CREATE OR REPLACE MACRO pg._scale(type) AS CASE WHEN type NOT IN ('DECIMAL(38,10)', 'DECIMAL(38,19)')
    THEN coalesce(TRY_CAST(regexp_extract(type, ',(\d+)\)', 1) AS INTEGER), 0) END;
CREATE OR REPLACE MACRO pg.scale(x) AS CASE WHEN x IS NOT NULL THEN coalesce(pg._scale(typeof(x)), pg.min_scale(x)) END;
-- The number of x's bucket, of n buckets between two bounds; 0 and n + 1 are outside.
CREATE OR REPLACE MACRO pg._buckets(n) AS
    if(n > 0, n, pg.raise('2201G', 'count must be greater than zero'));
CREATE OR REPLACE MACRO pg._bucket_of(x, low, high, n, place) AS
    CASE WHEN x IS NULL OR low IS NULL OR high IS NULL OR n IS NULL THEN NULL
         WHEN low = high THEN pg.raise('2201G', 'lower bound cannot equal upper bound')
         WHEN if(low < high, x < low, x > low) THEN 0 * pg._buckets(n)
         WHEN if(low < high, x >= high, x <= high) THEN pg._buckets(n) + 1
         ELSE least(place, pg._buckets(n) - 1)::INTEGER + 1 END;
CREATE OR REPLACE MACRO pg._bound(x) AS
    if(coalesce(isfinite(x), true), x, pg.raise('2201G', 'lower and upper bounds must be finite')::DOUBLE);
CREATE OR REPLACE MACRO pg._share(x, low, high, n) AS floor(n * if(isinf(high - low),
    (x / 2 - low / 2) / (high / 2 - low / 2), (x - low) / (high - low)));
CREATE OR REPLACE MACRO pg.width_bucket
    (x, bounds) AS if(len(list_filter(bounds, lambda b: b IS NULL)) > 0,
        pg.raise('22004', 'thresholds array must not contain NULLs'),
        if(x IS NULL, NULL, len(list_filter(bounds, lambda b: b <= x))::INTEGER)),
    (x DOUBLE, low DOUBLE, high DOUBLE, n) AS pg._bucket_of(
        if(isnan(x), pg.raise('2201G', 'operand, lower bound, and upper bound cannot be NaN')::DOUBLE, x),
        pg._bound(low), pg._bound(high), n, pg._share(x, low, high, n)),
    (x DECIMAL(38,19), low DECIMAL(38,19), high DECIMAL(38,19), n) AS pg._bucket_of(x, low, high, n,
        if((abs(x::DOUBLE) + abs(low::DOUBLE) + abs(high::DOUBLE)) * n < 1e19,
           pg._unscaled_quotient(x - low) * n // pg._unscaled_quotient(high - low),
           pg._share(x::DOUBLE, low::DOUBLE, high::DOUBLE, n)));
CREATE OR REPLACE MACRO pg.divide
    (x SMALLINT, y SMALLINT) AS x // y, (x INTEGER, y INTEGER) AS x // y, (x BIGINT, y BIGINT) AS x // y,
    (x FLOAT, y FLOAT) AS x / y, (x DOUBLE, y DOUBLE) AS x / y,
    (x DECIMAL(38,10), y DECIMAL(38,10)) AS (x::DOUBLE / y::DOUBLE)::DECIMAL(38,10),
    (x HUGEINT, y HUGEINT) AS (x::DOUBLE / y::DOUBLE)::DECIMAL(38,10), (x INTERVAL, y DOUBLE) AS x * (1 / y);
-- The average of a sum x and a count n, exact, and rounded to PostgreSQL's number of places (select_div_scale in
-- numeric.c), but at most 19. The places depend on the first base-10000 digits of both numbers and their positions, and
-- on s, the scale of the values if their type has one. A lambda computes each intermediate value only once; its fields
-- are read by a string, since HAVING would resolve a field's name as a column. This variant, for values within 64 bits,
-- is several times as fast: w is the part before the point, f the 10 places after it; q and the digits h (9 of them), m
-- (9) and l are the quotient.
CREATE OR REPLACE MACRO pg._ten_to(k) AS pow(10, k)::BIGINT;
CREATE OR REPLACE MACRO pg._weight(x) AS
    (x >= 10000)::INTEGER + (x >= 100000000)::INTEGER + (x >= 1000000000000)::INTEGER;
CREATE OR REPLACE MACRO pg._quotient_weight(x, n) AS
    pg._weight(x) - pg._weight(n)
    - (x // pg._ten_to(4 * pg._weight(x)) <= n // pg._ten_to(4 * pg._weight(n)))::INTEGER;
CREATE OR REPLACE MACRO pg._written_places(f, width) AS length(rtrim(lpad(f::VARCHAR, width, '0'), '0'));
CREATE OR REPLACE MACRO pg._places(qw, s, written) AS
    CASE WHEN qw < 2 AND s IS NULL THEN least(19, 16 - 4 * qw)
         ELSE least(19, greatest(0, 16 - 4 * qw, coalesce(s, written))) END;
CREATE OR REPLACE MACRO pg._up(x, unit) AS (x + unit // 2) // unit * unit;
CREATE OR REPLACE MACRO pg._at_19(whole, rest) AS
    whole::DECIMAL(38,19) + rest::DECIMAL(38,0) * '0.0000000000000000001'::DECIMAL(19,19);
CREATE OR REPLACE MACRO pg._average_in_64(x, n, s) AS
    list_transform(list_transform(list_transform(list_transform(list_transform(list_transform([{
        w: trunc(x::DOUBLE)::BIGINT, f: round((x - trunc(x::DOUBLE)::BIGINT)::DOUBLE * 1e10)::BIGINT, n: n}],
    lambda _v: {w: _v['w'] + (_v['f'] >= 10000000000)::BIGINT - (_v['f'] < 0)::BIGINT,
               f: _v['f'] + 10000000000 * ((_v['f'] < 0)::BIGINT - (_v['f'] >= 10000000000)::BIGINT), n: _v['n']}),
    lambda _v: {q: _v['w'] // _v['n'], h: _v['w'] % _v['n'] * 1000000000 + _v['f'] // 10,
               m: _v['f'] % 10 * 100000000, n: _v['n'], f: _v['f'],
               qw: pg._quotient_weight(if(_v['w'] = 0, _v['f'] * 100, _v['w']), _v['n']) - if(_v['w'] = 0, 3, 0)}),
    lambda _v: {q: _v['q'], h: _v['h'] // _v['n'], m: _v['h'] % _v['n'] * 1000000000 + _v['m'], n: _v['n'],
               p: pg._places(_v['qw'], s, pg._written_places(_v['f'], 10))}),
    lambda _v: {q: _v['q'], h: _v['h'], m: _v['m'] // _v['n'], l: _v['m'] % _v['n'] * 10, n: _v['n'], p: _v['p']}),
    lambda _v: {q: _v['q'], h: if(_v['p'] > 8, _v['h'], pg._up(_v['h'], pg._ten_to(9 - _v['p']))),
               m: CASE WHEN _v['p'] > 18 THEN _v['m'] * 10 + _v['l'] // _v['n'] + (2 * (_v['l'] % _v['n']) >= _v['n'])::BIGINT
                       WHEN _v['p'] > 8 THEN pg._up(_v['m'] * 10 + _v['l'] // _v['n'], pg._ten_to(19 - _v['p'])) ELSE 0 END}),
    lambda _v: pg._at_19(_v['q'], _v['h']::HUGEINT * 10000000000 + _v['m']))[1];
-- The same for larger values: w is the part before the point, f the 19 places after it, d and e the digits of both.
CREATE OR REPLACE MACRO pg._long_weight(d) AS (length(d) - 1) // 4;
CREATE OR REPLACE MACRO pg._first_of(d) AS left(d, ((length(d) - 1) % 4 + 1)::INTEGER)::INTEGER;
CREATE OR REPLACE MACRO pg._long_quotient_weight(d, e) AS
    pg._long_weight(d) - pg._long_weight(e) - (pg._first_of(d) <= pg._first_of(e))::INTEGER;
CREATE OR REPLACE MACRO pg._long_average(x, n, s) AS
    list_transform(list_transform(list_transform(list_transform([{
        w: trunc(x)::HUGEINT, n: n::HUGEINT,
        f: ((x - trunc(x))::DECIMAL(38,19) * 10000000000000000000::DECIMAL(20,0))::HUGEINT}],
    lambda _v: {w: _v['w'], f: _v['f'], n: _v['n'], q: _v['w'] // _v['n'],
               qw: pg._long_quotient_weight(if(_v['w'] = 0, _v['f'] * 10, _v['w'])::VARCHAR, _v['n']::VARCHAR)
                   - if(_v['w'] = 0, 5, 0)}),
    lambda _v: {q: _v['q'], r: (_v['w'] - _v['q'] * _v['n']) * 10000000000000000000 + _v['f'], n: _v['n'],
               p: pg._places(_v['qw'], s, pg._written_places(_v['f'], 19))}),
    lambda _v: {q: _v['q'], r: _v['r'] // _v['n'], l: _v['r'] % _v['n'], n: _v['n'], p: _v['p']}),
    lambda _v: pg._at_19(_v['q'], if(_v['p'] > 18, _v['r'] + (2 * _v['l'] >= _v['n'])::HUGEINT,
                                pg._up(_v['r'], ('1' || repeat('0', 19 - _v['p']))::HUGEINT))))[1];
-- The same for an integer: h and m are 9 digits each behind the point, r and l what remains.
CREATE OR REPLACE MACRO pg._average_of_integer(x, n) AS
    list_transform(list_transform([{
        q: x // n, h: x % n * 1000000000 // n, r: x % n * 1000000000 % n, n: n,
        p: pg._places(pg._quotient_weight(x, n) - if(x = 0, 3, 0), 0, 0)}],
    lambda _v: {q: _v['q'], h: _v['h'], p: _v['p'], n: _v['n'],
               m: _v['r'] * 1000000000 // _v['n'], l: _v['r'] * 1000000000 % _v['n'] * 10}),
    lambda _v: pg._at_19(_v['q'], if(_v['p'] > 8, _v['h'], pg._up(_v['h'], pg._ten_to(9 - _v['p'])))::HUGEINT * 10000000000
        + CASE WHEN _v['p'] > 18 THEN _v['m'] * 10 + _v['l'] // _v['n'] + (2 * (_v['l'] % _v['n']) >= _v['n'])::BIGINT
               WHEN _v['p'] > 8 THEN pg._up(_v['m'] * 10 + _v['l'] // _v['n'], pg._ten_to(19 - _v['p']))
               ELSE 0 END))[1];
CREATE OR REPLACE MACRO pg._average(x, n, s, is_short) AS
    CASE WHEN is_short AND abs(x) < 1000000000000000 AND n < 2147483648
         THEN if(x < 0, -1, 1) * if(s = 0, pg._average_of_integer(abs(x)::DECIMAL(18,0)::BIGINT, n::BIGINT),
                                    pg._average_in_64(abs(x), n::BIGINT, s))
         ELSE if(x < 0, -1, 1) * pg._long_average(abs(x), n, s) END;
-- Without s, the values are numerics without a precision; s is -1 for values with the type of an average.
CREATE OR REPLACE MACRO pg._avg
    (x, n, s) AS pg._average(x, n, nullif(s, -1), coalesce(s, 10) BETWEEN 0 AND 10),
    (x HUGEINT, n) AS pg._average(x::DECIMAL(38,0), n, 0, true),
    (x DECIMAL(38,19), n) AS pg._average(x, n, NULL, false),
    (x DOUBLE, n) AS x / n;
-- Quotients, rounded as averages. PostgreSQL's number of places depends on the values themselves, so s is not -1.
CREATE OR REPLACE MACRO pg.divide_by_integer(x, n, s) AS
    if(n < 0, -1, 1) * pg._average(x, abs(n::HUGEINT), s, true);
CREATE OR REPLACE MACRO pg.divide_once_by_integer(x, n, s) AS
    list_transform([{x: x, n: n}], lambda _o: pg.divide_by_integer(_o['x'], _o['n'], s))[1];
-- For any two numerics: the quotient q of the unscaled values and 20 more digits f, in as many steps as keep the
-- remainder r within 128 bits: one step for divisors below 10^18, two below 10^28. For larger divisors the digits are a
-- double's.
CREATE OR REPLACE MACRO pg._digits_of(x) AS ltrim(replace(x::DECIMAL(38,19)::VARCHAR, '.', ''), '0');
-- The digits up to the 19th after the point of a numeric that has more before the point than DECIMAL(38,19); NULL for a
-- float, which longer constants are.
CREATE OR REPLACE MACRO pg._long_digits_of(x) AS if(contains(x::VARCHAR, 'e'), NULL, ltrim(
    split_part(x::VARCHAR, '.', 1) || rpad(left(split_part(x::VARCHAR, '.', 2), 19), 19, '0'), '0'));
CREATE OR REPLACE MACRO pg._zeros_behind(d) AS length(d) - length(rtrim(d, '0'));
CREATE OR REPLACE MACRO pg._exact_quotient(digits, other_digits) AS
    list_transform(list_transform(list_transform(list_transform(list_transform([{
        d: digits, e: other_digits}],
    lambda _v: {d: _v['d'] || '0', e: _v['e'] || '0', z: least(pg._zeros_behind(_v['d']), pg._zeros_behind(_v['e']))}),
    lambda _v: {a: try_cast('0' || left(_v['d'], length(_v['d']) - _v['z'] - 1) AS HUGEINT), z: _v['z'],
                b: try_cast('0' || left(_v['e'], length(_v['e']) - _v['z'] - 1) AS HUGEINT),
                qw: pg._long_quotient_weight(_v['d'], _v['e'])}),
    lambda _v: {q: _v['a'] // _v['b'], r: _v['a'] % _v['b'], b: _v['b'], p: pg._places(_v['qw'], 19 - _v['z'], 0)}),
    lambda _v: {q: _v['q'], p: _v['p'], f:
        CASE WHEN _v['b'] < 1000000000000000000 THEN _v['r'] * 100000000000000000000 // _v['b']
             WHEN _v['b'] < 10000000000000000000000000000
             THEN _v['r'] * 10000000000 // _v['b'] * 10000000000
                  + _v['r'] * 10000000000 % _v['b'] * 10000000000 // _v['b']
             ELSE (_v['r']::DOUBLE / _v['b']::DOUBLE * 1e20)::HUGEINT END}),
    lambda _v: pg._at_19(_v['q'], CASE WHEN _v['p'] = 19 THEN (_v['f'] + 5) // 10
                                       WHEN _v['p'] = 16 THEN (_v['f'] + 5000) // 10000 * 1000
                                       ELSE pg._up(_v['f'], pow(10, 20 - _v['p'])::HUGEINT) // 10 END))[1];
CREATE OR REPLACE MACRO pg.divide_numerics(x, y) AS
    coalesce(sign(x) * sign(y)
             * pg._exact_quotient(pg._digits_of(abs(try_cast(x AS DECIMAL(38,19)))),
                                  pg._digits_of(abs(try_cast(y AS DECIMAL(38,19))))),
             sign(x) * sign(y) * pg._exact_quotient(pg._long_digits_of(abs(x)), pg._long_digits_of(abs(y))),
             format('{:.16g}', x::DOUBLE / y::DOUBLE)::DECIMAL(38,19));
-- Quotients for views that were planned before the functions above existed.
CREATE OR REPLACE MACRO pg.divide_integers(x, y) AS
    ((x::HUGEINT * 10000000000000000000 + sign(x)::HUGEINT * (abs(y::HUGEINT) // 2)) // y::HUGEINT)::DECIMAL(38,0)
    * '0.0000000000000000001'::DECIMAL(19,19);
CREATE OR REPLACE MACRO pg.divide_quotients(x, y) AS format('{:.16g}', x::DOUBLE / y::DOUBLE)::DECIMAL(38,19);
-- Standard deviations and variances of exact numbers, rounded to PostgreSQL's number of places (numeric_stddev_internal
-- in numeric.c), but at most 19. They come from the count n of a group's values, their sum u and the sum of their
-- squares, all in units of 10^-s; `places` are twice the values' decimal places, NULL if only the values tell them.
-- With the quotient q and the remainder r of u and n, the differences of the values from q have the sum r, and the sum
-- of their squares is m = squares - q * (u + r). The variance is (m - r * r / n) / d, where d is n or, of a sample,
-- n - 1. Macros that are called with the variable of a lambda name their own variable differently.
CREATE OR REPLACE MACRO pg._power_of_ten(k) AS ('1' || repeat('0', k::INTEGER))::HUGEINT;
-- Quotient q and remainder r of integers of 128 bits; b > 0. DuckDB divides them bit by bit, in 1.6 us. Here each step
-- adds a float's 52 bits to the quotient, and the last takes away one too many.
CREATE OR REPLACE MACRO pg._with_more(a, b, q) AS {a: a, b: b, q: q + ((a - q * b)::DOUBLE / b::DOUBLE)::HUGEINT};
CREATE OR REPLACE MACRO pg._long_divided(a, b) AS list_transform(list_transform(list_transform(list_transform(
    [pg._with_more(a, b, 0::HUGEINT)],
    lambda _l: pg._with_more(_l['a'], _l['b'], _l['q'])), lambda _l: pg._with_more(_l['a'], _l['b'], _l['q'])),
    lambda _l: {q: _l['q'], b: _l['b'], r: _l['a'] - _l['q'] * _l['b']}),
    lambda _l: if(_l['r'] < 0, {q: _l['q'] - 1, r: _l['r'] + _l['b']}, {q: _l['q'], r: _l['r']}))[1];
CREATE OR REPLACE MACRO pg._divided(a, b) AS list_transform([{a: a::HUGEINT, b: b::HUGEINT}], lambda _d:
    if(_d['a'] BETWEEN 0 AND 9223372036854775807 AND _d['b'] <= 9223372036854775807,
       {q: (_d['a']::BIGINT // _d['b']::BIGINT)::HUGEINT, r: (_d['a']::BIGINT % _d['b']::BIGINT)::HUGEINT},
       pg._long_divided(_d['a'], _d['b'])))[1];
-- The integer as which a decimal is stored. Decimals of up to 15 digits are exact as floats. A sort key has the bits of
-- the integer, with the sign turned over; a cast, which divides 128 bits, takes ten times as long.
CREATE OR REPLACE MACRO pg._units_of_float(x, s) AS (x::DOUBLE * pow(10, s))::BIGINT::HUGEINT;
CREATE OR REPLACE MACRO pg._units_in_64(x, s) AS CASE
    WHEN abs(x) < pow(10, 15 - s) THEN (x::DOUBLE * pow(10, s))::BIGINT
    WHEN x IS NOT NULL
    THEN xor((create_sort_key(x, 'ASC NULLS LAST')[2:]::BIT)::BIGINT, (-9223372036854775808)::BIGINT) END;
CREATE OR REPLACE MACRO pg._units_in_128(x) AS CASE WHEN x IS NOT NULL THEN xor(
    (create_sort_key(x, 'ASC NULLS LAST')[2:]::BIT)::HUGEINT, (-170141183460469231731687303715884105728)::HUGEINT) END;
-- Units of 128 bits are summed up by halves.
CREATE OR REPLACE MACRO pg._high_units(u) AS u >> 64;
CREATE OR REPLACE MACRO pg._low_units(u) AS u & 18446744073709551615;
-- A square is summed up whole where it has up to 30 digits, else by its parts: the products of the halves of 64 bits,
-- or of three limbs of 43 bits. Each part is one for a power of 2^32 or 2^43. A lambda computes the units once.
CREATE OR REPLACE MACRO pg._square(u) AS u * u;
CREATE OR REPLACE MACRO pg._high_half(u) AS u >> 32;
CREATE OR REPLACE MACRO pg._low_half(u) AS u & 4294967295;
CREATE OR REPLACE MACRO pg._square_by_halves_0(u) AS pg._low_half(u)::UBIGINT * pg._low_half(u)::UBIGINT;
CREATE OR REPLACE MACRO pg._square_by_halves_1(u) AS pg._high_half(u) * pg._low_half(u);
CREATE OR REPLACE MACRO pg._square_by_halves_2(u) AS pg._high_half(u) * pg._high_half(u);
CREATE OR REPLACE MACRO pg._limb_0(u) AS u & 8796093022207;
CREATE OR REPLACE MACRO pg._limb_1(u) AS (u >> 43) & 8796093022207;
CREATE OR REPLACE MACRO pg._limb_2(u) AS u >> 86;
CREATE OR REPLACE MACRO pg._product_0(a, b) AS pg._limb_0(a) * pg._limb_0(b);
CREATE OR REPLACE MACRO pg._product_1(a, b) AS pg._limb_0(a) * pg._limb_1(b) + pg._limb_1(a) * pg._limb_0(b);
CREATE OR REPLACE MACRO pg._product_2(a, b) AS
    pg._limb_0(a) * pg._limb_2(b) + pg._limb_1(a) * pg._limb_1(b) + pg._limb_2(a) * pg._limb_0(b);
CREATE OR REPLACE MACRO pg._product_3(a, b) AS pg._limb_1(a) * pg._limb_2(b) + pg._limb_2(a) * pg._limb_1(b);
CREATE OR REPLACE MACRO pg._product_4(a, b) AS pg._limb_2(a) * pg._limb_2(b);
CREATE OR REPLACE MACRO pg._square_by_limbs_0(u) AS list_transform([u], lambda _u: pg._product_0(_u, _u))[1];
CREATE OR REPLACE MACRO pg._square_by_limbs_1(u) AS list_transform([u], lambda _u: pg._product_1(_u, _u))[1];
CREATE OR REPLACE MACRO pg._square_by_limbs_2(u) AS list_transform([u], lambda _u: pg._product_2(_u, _u))[1];
CREATE OR REPLACE MACRO pg._square_by_limbs_3(u) AS list_transform([u], lambda _u: pg._product_3(_u, _u))[1];
CREATE OR REPLACE MACRO pg._square_by_limbs_4(u) AS list_transform([u], lambda _u: pg._product_4(_u, _u))[1];
-- A number by its limbs, the highest first.
CREATE OR REPLACE MACRO pg._limbs(m0, m1, m2, m3, m4) AS
    list_transform(list_transform(list_transform(list_transform([{l: [m0 & 8796093022207], m: m1 + (m0 >> 43)}],
    lambda _c: {l: list_prepend(_c['m'] & 8796093022207, _c['l']), m: m2 + (_c['m'] >> 43)}),
    lambda _c: {l: list_prepend(_c['m'] & 8796093022207, _c['l']), m: m3 + (_c['m'] >> 43)}),
    lambda _c: {l: list_prepend(_c['m'] & 8796093022207, _c['l']), m: m4 + (_c['m'] >> 43)}),
    lambda _c: list_prepend(_c['m'], _c['l']))[1];
CREATE OR REPLACE MACRO pg._of_limbs(limbs) AS list_reduce(limbs, lambda _a, _b: _a * 8796093022208 + _b);
CREATE OR REPLACE MACRO pg._float_of_limbs(limbs) AS
    list_reduce(list_transform(limbs, lambda _l: _l::DOUBLE), lambda _a, _b: _a * 8796093022208 + _b);
CREATE OR REPLACE MACRO pg._limbs_divided(limbs, d) AS
    list_reduce(list_transform(limbs, lambda _l: {q: [_l], r: 0::HUGEINT}),
        lambda _a, _b: list_transform([pg._divided(_a['r'] * 8796093022208 + _b['q'][1], d)],
            lambda _e: {q: list_append(_a['q'], _e['q']), r: _e['r']})[1], {q: []::HUGEINT[], r: 0::HUGEINT});
-- The places: as `_places`, but the first base-10000 digits are those of floats, told by 15 decimal digits.
CREATE OR REPLACE MACRO pg._first_digit(x) AS list_transform(list_transform([format('{:.14e}', x)],
    lambda _f: {e: split_part(_f, 'e', 2)::INTEGER, d: left(_f, 1) || substring(_f, 3, 3)}),
    lambda _f: {w: _f['e'] >> 2, f: left(_f['d'], (_f['e'] & 3) + 1)::INTEGER})[1];
CREATE OR REPLACE MACRO pg._spread_places(x, n, places) AS
    list_transform([{x: pg._first_digit(x), n: pg._first_digit(n)}], lambda _p: greatest(places,
        16 - 4 * (_p['x']['w'] - _p['n']['w'] - (_p['x']['f'] <= _p['n']['f'])::INTEGER)))[1];
-- A root needs more than 19 of the variance's places where it is small, and of a large one those that fit 38 digits.
CREATE OR REPLACE MACRO pg._kept_places(p, x, s, is_root) AS
    if(is_root, least(p, 2 * s + 27, 37 - if(x > 0, floor(log10(x))::INTEGER, 0)), least(p, 19));
CREATE OR REPLACE MACRO pg._at_places(v, p) AS
    (v * pg._power_of_ten(19 - p))::DECIMAL(38,0) * '0.0000000000000000001'::DECIMAL(19,19);
CREATE OR REPLACE MACRO pg._half_of_power(k) AS if(k > 0, ('5' || repeat('0', (k - 1)::INTEGER))::HUGEINT, 0);
CREATE OR REPLACE MACRO pg._half_up(v, k) AS pg._divided(v + pg._half_of_power(k), pg._power_of_ten(k))['q'];
CREATE OR REPLACE MACRO pg._times_power(v, k) AS if(k < 0, v // pg._power_of_ten(-k), v * pg._power_of_ten(k));
-- The root of v * 10^-p, by a step of Newton's method: w has v's digits and 36 or 37 in all, a is w's root as a float,
-- c what it lacks in units of 10^-15, but for the square of c. Without places the root may be just below a half.
CREATE OR REPLACE MACRO pg._root_at_places(v, p) AS
    list_transform(list_transform(list_transform(list_transform(list_transform(list_transform([{v: v, p: p}],
    lambda _r: {v: _r['v'], p: _r['p'], k: 37 - length(_r['v']::VARCHAR)}),
    lambda _r: {v: _r['v'], p: _r['p'], h: (_r['k'] + _r['p']) >> 1,
               w: pg._times_power(_r['v'], _r['k'] - ((_r['k'] + _r['p']) & 1))}),
    lambda _r: {v: _r['v'], p: _r['p'], h: _r['h'], w: _r['w'], a: sqrt(_r['w']::DOUBLE)::HUGEINT}),
    lambda _r: {v: _r['v'], p: _r['p'], h: _r['h'], a: _r['a'],
               c: pg._divided((_r['w'] - _r['a'] * _r['a']) * 1000000000000000, greatest(2 * _r['a'], 1))['q']}),
    lambda _r: {v: _r['v'], p: _r['p'], a: pg._half_up(_r['a'] * 1000000000000000 + _r['c']
        - (_r['c']::DOUBLE * _r['c']::DOUBLE / 2e15 / greatest(_r['a'], 1)::DOUBLE)::HUGEINT,
        15 + _r['h'] - least(_r['p'], 19))}),
    lambda _r: CASE WHEN _r['v'] = 0 THEN 0 WHEN _r['p'] > 0 THEN pg._at_places(_r['a'], least(_r['p'], 19))
                    ELSE pg._at_places(_r['a'] - (_r['a'] * (_r['a'] - 1) >= _r['v'])::HUGEINT, 0) END)[1];
-- The variance is q + g / e in units of 10^-2s, with e = n * d. v is the variance in units of 10^-p. In a fraction 28
-- digits are enough.
CREATE OR REPLACE MACRO pg._fraction_of(g, e) AS list_transform([pg._divided(g * 100000000000000, e)],
    lambda _g: _g['q'] * 100000000000000 + pg._divided(_g['r'] * 100000000000000, e)['q'])[1];
CREATE OR REPLACE MACRO pg._rounded_variance(q, g, e, k) AS
    if(k < 0, 0, q * pg._power_of_ten(least(k, 27)))
    + pg._half_up(if(k < 0, q, pg._fraction_of(g, e)), if(k < 0, -k, 28 - least(k, 27)));
CREATE OR REPLACE MACRO pg._variance(n, d, r, m, s, places, is_root) AS
    list_transform(list_transform(list_transform(list_transform(list_transform([{
        m: pg._divided(m, d), n: n, r: r, e: n * d}],
    lambda _s: {q: _s['m']['q'], g: _s['m']['r'] * _s['n'] - _s['r'] * _s['r'], e: _s['e']}),
    lambda _s: {q: _s['q'] - (_s['g'] < 0)::HUGEINT, g: _s['g'] + if(_s['g'] < 0, _s['e'], 0), e: _s['e']}),
    lambda _s: {q: _s['q'], g: _s['g'], e: _s['e'],
               x: (_s['q']::DOUBLE + _s['g']::DOUBLE / _s['e']::DOUBLE) / pow(10, 2 * s)}),
    lambda _s: {q: _s['q'], g: _s['g'], e: _s['e'], p: pg._kept_places(
        pg._spread_places(_s['x'] * _s['e']::DOUBLE, _s['e']::DOUBLE, places), _s['x'], s, is_root)}),
    lambda _s: {v: pg._rounded_variance(_s['q'], _s['g'], _s['e'], _s['p'] - 2 * s), p: _s['p']})[1];
-- The same where m has more than 128 bits. Then no place beyond the units is wanted.
CREATE OR REPLACE MACRO pg._long_rounded_variance(limbs, k) AS pg._of_limbs(pg._limbs_divided(pg._limbs_divided(
    pg._limbs(limbs[5] + pg._half_of_power(k), limbs[4], limbs[3], limbs[2], limbs[1]),
    pg._power_of_ten(k // 2))['q'], pg._power_of_ten(k - k // 2))['q']);
CREATE OR REPLACE MACRO pg._long_variance(n, d, r, limbs, s, places, is_root) AS
    list_transform(list_transform(list_transform([{m: pg._limbs_divided(limbs, d), n: n, r: r, e: n * d}],
    lambda _s: {q: _s['m']['q'], g: _s['m']['r'] * _s['n'] - _s['r'] * _s['r'], e: _s['e'],
               x: pg._float_of_limbs(_s['m']['q']) / pow(10, 2 * s)}),
    lambda _s: {q: list_append(_s['q'][:4], _s['q'][5] - (_s['g'] < 0)::HUGEINT), p: least(2 * s, pg._kept_places(
        pg._spread_places(_s['x'] * _s['e']::DOUBLE, _s['e']::DOUBLE, places), _s['x'], s, is_root))}),
    lambda _s: {v: pg._long_rounded_variance(_s['q'], 2 * s - _s['p']), p: _s['p']})[1];
-- `less` is 1 for a sample. Of fewer values than one more there is none.
CREATE OR REPLACE MACRO pg._spread_of(variance, is_root) AS list_transform([variance],
    lambda _w: if(is_root, pg._root_at_places(_w['v'], _w['p']), pg._at_places(_w['v'], _w['p'])))[1];
CREATE OR REPLACE MACRO pg._spread_of_squares(n, u, squares, s, places, less, is_root) AS CASE WHEN n > less THEN
    list_transform(list_transform([{n: n::HUGEINT, u: u::HUGEINT, m: squares::HUGEINT, q: pg._divided(u, n)['q']}],
    lambda _v: {n: _v['n'], r: _v['u'] - _v['q'] * _v['n'],
               m: _v['m'] - _v['q'] * (2 * _v['u'] - _v['q'] * _v['n'])}),
    lambda _v: pg._spread_of(
        pg._variance(_v['n'], _v['n'] - less, _v['r'], _v['m'], s, places, is_root), is_root))[1] END;
-- The sum is high * 2^64 + low, which may have more than 128 bits; u + r is q * n + 2 * r.
-- The zeros behind the sum's last 19 digits tell the values' places.
CREATE OR REPLACE MACRO pg._last_digits(u) AS u % 10000000000000000000;
CREATE OR REPLACE MACRO pg._last_digits_of_sums(high, low) AS
    pg._last_digits(pg._last_digits(high) * 8446744073709551616 + pg._last_digits(low));
CREATE OR REPLACE MACRO pg._places_of_sums(high, low, s, places) AS coalesce(places, 2 * greatest(0,
    s - pg._zeros_behind((10000000000000000000::HUGEINT + abs(pg._last_digits_of_sums(high, low)))::VARCHAR)));
CREATE OR REPLACE MACRO pg._spread_of_limbs(n, high, low, w0, w1, w2, w3, w4, s, places, less, is_root) AS
    CASE WHEN n > less THEN
    list_transform(list_transform(list_transform(list_transform(list_transform([{
        n: n::HUGEINT, p: pg._places_of_sums(high::HUGEINT, low::HUGEINT, s, places), l: low::HUGEINT,
        h: pg._divided(high, n), w: [w0::HUGEINT, w1::HUGEINT, w2::HUGEINT, w3::HUGEINT, w4::HUGEINT]}],
    lambda _v: {n: _v['n'], p: _v['p'], h: _v['h']['q'], w: _v['w'],
               l: pg._divided(_v['h']['r'] * 18446744073709551616 + _v['l'], _v['n'])}),
    lambda _v: {n: _v['n'], p: _v['p'], w: _v['w'], q: _v['h'] * 18446744073709551616 + _v['l']['q'], r: _v['l']['r']}),
    lambda _v: {n: _v['n'], p: _v['p'], r: _v['r'], m: pg._limbs(
        _v['w'][1] - _v['n'] * pg._product_0(_v['q'], _v['q']) - 2 * pg._product_0(_v['q'], _v['r']),
        _v['w'][2] - _v['n'] * pg._product_1(_v['q'], _v['q']) - 2 * pg._product_1(_v['q'], _v['r']),
        _v['w'][3] - _v['n'] * pg._product_2(_v['q'], _v['q']) - 2 * pg._product_2(_v['q'], _v['r']),
        _v['w'][4] - _v['n'] * pg._product_3(_v['q'], _v['q']) - 2 * pg._product_3(_v['q'], _v['r']),
        _v['w'][5] - _v['n'] * pg._product_4(_v['q'], _v['q']) - 2 * pg._product_4(_v['q'], _v['r']))}),
    lambda _v: {n: _v['n'], p: _v['p'], r: _v['r'], m: _v['m'], is_short: pg._float_of_limbs(_v['m']) < 1e37}),
    lambda _v: pg._spread_of(if(_v['is_short'],
        pg._variance(_v['n'], _v['n'] - less, _v['r'], pg._of_limbs(if(_v['is_short'], _v['m'], [0::HUGEINT])),
                     s, _v['p'], is_root),
        pg._long_variance(_v['n'], _v['n'] - less, _v['r'], _v['m'], s, _v['p'], is_root)), is_root))[1] END;
CREATE OR REPLACE MACRO pg._spread_of_halves(n, u, h0, h1, h2, s, places, less, is_root) AS pg._spread_of_limbs(
    n, 0, u, h0::HUGEINT + h1::HUGEINT * 8589934592, h2::HUGEINT * 2097152, 0, 0, 0, s, places, less, is_root);
-- Products with an average: whole parts and fractions are multiplied separately, so that only the product of the
-- fractions is rounded.
CREATE OR REPLACE MACRO pg._whole(x) AS trunc(x)::DECIMAL(19,0);
CREATE OR REPLACE MACRO pg._fraction(x) AS (x - trunc(x))::DECIMAL(19,19);
CREATE OR REPLACE MACRO pg.multiply_quotients(x, y) AS
    list_transform([{x: x::DECIMAL(38,19), y: y::DECIMAL(38,19)}], lambda _v:
        _v['x'] * pg._whole(_v['y']) + pg._whole(_v['x']) * pg._fraction(_v['y'])
        + (pg._fraction(_v['x']) * pg._fraction(_v['y']))::DECIMAL(38,19))[1];
-- As above, of numbers with up to 38 digits after the point, which are taken in two parts of 19.
CREATE OR REPLACE MACRO pg._high(x) AS trunc(x - trunc(x), 19)::DECIMAL(19,19);
CREATE OR REPLACE MACRO pg._low(x) AS
    ((x - trunc(x) - trunc(x - trunc(x), 19)) * '10000000000000000000'::DECIMAL(20,0))::DECIMAL(19,19);
CREATE OR REPLACE MACRO pg.multiply_places(x, y) AS
    list_transform([{x: pg._whole(x), y: pg._whole(y), xh: pg._high(x), yh: pg._high(y), xl: pg._low(x), yl: pg._low(y)}],
        lambda _v: _v['x'] * _v['y'] + _v['x'] * _v['yh'] + _v['y'] * _v['xh'] + (_v['xh'] * _v['yh'])::DECIMAL(38,19)
            + ((_v['x'] * _v['yl'] + _v['y'] * _v['xl']) * '0.0000000000000000001'::DECIMAL(19,19))::DECIMAL(38,19))[1];
CREATE OR REPLACE MACRO pg.quotient_text(x) AS rtrim(rtrim(x::VARCHAR, '0'), '.');
-- DuckDB keeps a product in 18 digits if both factors fit in them.
CREATE OR REPLACE MACRO pg.multiply
    (x SMALLINT, y SMALLINT) AS x * y, (x INTEGER, y INTEGER) AS x * y, (x BIGINT, y BIGINT) AS x * y,
    (x FLOAT, y FLOAT) AS x * y, (x DOUBLE, y DOUBLE) AS x * y,
    (x DECIMAL(38,10), y DECIMAL(38,10)) AS coalesce(TRY(x * y)::DECIMAL(38,10), (x::DOUBLE * y::DOUBLE)::DECIMAL(38,10)),
    (x, y) AS x * y;
-- The least integer has no negation, so DuckDB cannot divide it by -1.
CREATE OR REPLACE MACRO pg.modulo
    (x SMALLINT, y SMALLINT) AS if(y = -1, x & 0::SMALLINT, x % y), (x INTEGER, y INTEGER) AS if(y = -1, x & 0, x % y),
    (x BIGINT, y BIGINT) AS if(y = -1, x & 0::BIGINT, x % y), (x, y) AS x % y;
-- Shifted-out bits are lost, and only the last bits of the shift count, as in C.
CREATE OR REPLACE MACRO pg._signed_bits(x, bits) AS if(x >= bits // 2, x - bits, x);
CREATE OR REPLACE MACRO pg.shift_left
    (x SMALLINT, n) AS pg._signed_bits(((x::BIGINT & 65535) << (n & 31)::BIGINT) & 65535, 65536)::SMALLINT,
    (x INTEGER, n) AS
        pg._signed_bits(((x::BIGINT & 4294967295) << (n & 31)::BIGINT) & 4294967295, 4294967296)::INTEGER,
    (x BIGINT, n) AS pg._signed_bits((x::HUGEINT * (1::HUGEINT << (n & 63)::HUGEINT)) & 18446744073709551615,
                                     18446744073709551616)::BIGINT;
CREATE OR REPLACE MACRO pg.shift_right
    (x SMALLINT, n) AS (x::INTEGER >> (n & 31)::INTEGER)::SMALLINT, (x INTEGER, n) AS x >> (n & 31)::INTEGER,
    (x BIGINT, n) AS x >> (n & 63)::BIGINT;
-- Floats overflow to infinity.
CREATE OR REPLACE MACRO pg.real(x) AS
    if(isfinite(x) AND abs(x) >= 3.4028235677973366e38, sign(x) * 'Infinity'::FLOAT, TRY_CAST(x AS FLOAT));
-- The text of a float's reliable digits, for a conversion to numeric.
CREATE OR REPLACE MACRO pg.float_digits
    (x FLOAT) AS
        if(NOT isfinite(x), pg.raise('22003', 'value overflows numeric format')::VARCHAR, format('{:.6g}', x)),
    (x DOUBLE) AS
        if(NOT isfinite(x), pg.raise('22003', 'value overflows numeric format')::VARCHAR, format('{:.15g}', x));
-- The nearest float of a numeric. DuckDB (1.5.5) rounds the parts before and after the point, and then their sum, where
-- the digits together are no exact double.
CREATE OR REPLACE MACRO pg._places_of(type) AS coalesce(try_cast(regexp_extract(type, ',(\d+)', 1) AS INTEGER), 0);
CREATE OR REPLACE MACRO pg._nearest_double(x) AS
    if(pg._places_of(typeof(x)) > 12 OR abs(x::DOUBLE) >= 9e15 / 10 ** pg._places_of(typeof(x)), x::VARCHAR::DOUBLE, x::DOUBLE);
CREATE OR REPLACE MACRO pg._nearest_real(x) AS x::VARCHAR::FLOAT;
CREATE OR REPLACE MACRO pg._days_between(x, y) AS if((isinf(x) AND y IS NOT NULL) OR (isinf(y) AND x IS NOT NULL),
    pg.raise('22008', 'cannot subtract infinite dates')::INTEGER, (x - y)::INTEGER);
CREATE OR REPLACE MACRO pg.subtract(x DATE, y DATE) AS pg._days_between(x, y),
    (x TIME, y TIME) AS to_microseconds(epoch_us(x) - epoch_us(y)), (x, y) AS x - y;

-- The reals and doubles whose shortest digits DuckDB (1.5.5) does not find are printed in Python: reals that are equal to
-- long texts, and doubles beyond 2 ^ 53.
CREATE OR REPLACE MACRO pg._is_hard(s, digits) AS
    length(s) > 9 AND if(digits = 6, try_cast(s AS DOUBLE) = try_cast(s AS FLOAT), contains(s, 'e+') AND length(s) > 15);
-- Texts of values for a cast to text: floats, numerics without trailing zeros, bytes and intervals differ from
-- DuckDB's.
CREATE OR REPLACE MACRO pg._float_text(s, digits) AS
    CASE WHEN s IN ('inf', '-inf', 'nan') THEN replace(replace(s, 'inf', 'Infinity'), 'nan', 'NaN')
         WHEN pg._is_hard(s, digits) THEN sparkwave_float_text(s, digits) || ''
         WHEN contains(s, 'e') THEN s
         WHEN length(ltrim(split_part(s, '.', 1), '-')) > digits THEN
              regexp_replace(regexp_replace(
                  regexp_replace(s, '^(-?[0-9])([0-9]*)\.([0-9]+)$', '\1.\2\3'), '0+$', ''), '\.$', '')
              || 'e+' || lpad((length(ltrim(split_part(s, '.', 1), '-')) - 1)::VARCHAR, 2, '0')
         ELSE regexp_replace(s, '\.0$', '') END;
CREATE OR REPLACE MACRO pg.real_text(x) AS pg._float_text(x::VARCHAR, 6);
-- DuckDB's texts of three doubles are other numbers.
CREATE OR REPLACE MACRO pg.double_text(x) AS
    CASE WHEN abs(x) >= 1e24 THEN sparkwave_float_text(format('{:.16e}', x), 15) || '' ELSE pg._float_text(x::VARCHAR, 15) END;
CREATE OR REPLACE MACRO pg._signed(n, unit, before) AS
    CASE WHEN n = 0 THEN NULL ELSE if(n > 0 AND before < 0, '+', '') || n || ' ' || unit || if(n = 1, '', 's') END;
CREATE OR REPLACE MACRO pg._clock(us, before) AS
    CASE WHEN us < 0 THEN '-' WHEN us > 0 AND before < 0 THEN '+' ELSE '' END
    || lpad((abs(us) // 3600000000)::VARCHAR, greatest(2, length((abs(us) // 3600000000)::VARCHAR))::INTEGER, '0')
    || strftime(make_timestamp(abs(us) % 3600000000), ':%M:%S')
    || if(us % 1000000 = 0, '', rtrim('.' || lpad((abs(us) % 1000000)::VARCHAR, 6, '0'), '0'));
CREATE OR REPLACE MACRO pg._micros(x) AS
    datepart('hour', x) * 3600000000 + datepart('minute', x) * 60000000 + datepart('us', x);
-- From its parts (years, months, days, microseconds), computed once: DuckDB plans each use of a macro's parameter
-- separately. The parts are in a list, since a struct's names are lost in LATERAL.
CREATE OR REPLACE MACRO pg._interval_text(x) AS
    CASE WHEN x IS NULL THEN NULL ELSE list_transform(
        [[datepart('year', x), datepart('month', x), datepart('day', x), pg._micros(x)]],
        lambda _i: concat_ws(' ', pg._signed(_i[1], 'year', 0), pg._signed(_i[2], 'mon', _i[1]),
                             pg._signed(_i[3], 'day', if(_i[2] = 0, _i[1], _i[2])),
                             if(_i[4] <> 0 OR (_i[1] = 0 AND _i[2] = 0 AND _i[3] = 0),
                                pg._clock(_i[4], coalesce(nullif(_i[3], 0), nullif(_i[2], 0), _i[1])), NULL)))[1] END;
-- An interval from the lake, stored as DuckDB's text (`catalog.types`), in which DuckDB cannot read long hours.
CREATE OR REPLACE MACRO pg.interval_from_lake(x) AS coalesce(TRY_CAST(x AS INTERVAL), CAST(
    regexp_replace(x::VARCHAR, '(-?)(\d+):(\d+):(\d+\.?\d*)$', '\1\2 hours \1\3 minutes \1\4 seconds') AS INTERVAL));
CREATE OR REPLACE MACRO pg._list_text(a) AS
    CASE WHEN a IS NULL THEN NULL ELSE '{' || coalesce(array_to_string(list_transform(a, lambda e: CASE
        WHEN e IS NULL THEN 'NULL'
        WHEN regexp_matches(e, '^$|[{}",\\\s]|^(?i:null)$')
        THEN '"' || replace(replace(e, '\', '\\'), '"', '\"') || '"' ELSE e END), ','), '') || '}' END;
-- Maps, whose entries are in the order of their keys (planner/functions/map_spelling.py).
CREATE OR REPLACE MACRO pg.map_from_entries(entries) AS map_from_entries(list_sort(entries));
CREATE OR REPLACE MACRO pg.map_from_key_values(k, v) AS CASE WHEN k IS NOT NULL AND v IS NOT NULL THEN
    pg.map_from_entries(list_zip(k, v)[1 : CASE WHEN len(k) = len(v) THEN len(k)
        ELSE pg.raise('22023', 'map keys and values have different length')::BIGINT END]) END;
CREATE OR REPLACE MACRO pg.map_access(m, k) AS map_extract_value(m, k);
CREATE OR REPLACE MACRO pg.map_keys(m) AS CASE WHEN m IS NOT NULL THEN map_keys(m) END;
CREATE OR REPLACE MACRO pg.map_values(m) AS CASE WHEN m IS NOT NULL THEN map_values(m) END;
CREATE OR REPLACE MACRO pg.map_entries(m) AS CASE WHEN m IS NOT NULL THEN map_entries(m) END;
CREATE OR REPLACE MACRO pg.map_length(m) AS len(map_keys(m))::INTEGER;
CREATE OR REPLACE MACRO pg.map_contains(m, k) AS list_contains(map_keys(m), k);
CREATE OR REPLACE MACRO pg.map_cat(a, b) AS CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a
    ELSE pg.map_from_entries(map_entries(map_concat(a, b))) END;
CREATE OR REPLACE MACRO pg.map_insert(m, k, v) AS CASE WHEN m IS NULL OR k IS NULL THEN m
    ELSE pg.map_from_entries(map_entries(map_concat(m, MAP([k], [v])))) END;
CREATE OR REPLACE MACRO pg.map_delete(m, k) AS CASE WHEN m IS NULL OR k IS NULL THEN m
    ELSE map_from_entries(list_filter(map_entries(m), lambda e: e.key <> k)) END;
-- The map of the entries that map_filter keeps; of none it is NULL, as in RisingWave.
CREATE OR REPLACE MACRO pg._map_of_some(entries) AS CASE WHEN len(entries) > 0 THEN map_from_entries(entries) END;
-- The text of a map whose entries have these texts.
CREATE OR REPLACE MACRO pg._map_text(texts) AS
    CASE WHEN texts IS NOT NULL THEN '{' || array_to_string(texts, ',') || '}' END;
-- A field in the text of a row.
CREATE OR REPLACE MACRO pg._record_cell(s) AS
    CASE WHEN s IS NULL THEN '' WHEN regexp_matches(s, '^$|[()",\\\s]')
         THEN '"' || replace(replace(s, '\', '\\'), '"', '""') || '"' ELSE s END;
-- The texts of functions in Python are joined with an empty one, which copies them: DuckDB (1.5.5) forgets them too
-- early behind CASE and coalesce.
-- A document in PostgreSQL's form, with a space after each : and , outside of strings; its keys are in order.
CREATE OR REPLACE MACRO pg._spaced(j) AS left(
    regexp_replace(j::VARCHAR || ',', '("(?:\\.|[^"\\])*"[\]}]*|[^",:]+)?([:,])\s*', '\1\2 ', 'g'), -2);
CREATE OR REPLACE MACRO pg.jsonb_text(j) AS
    if(contains(j::VARCHAR, ',"'), sparkwave_spaced_document(j::VARCHAR) || '', pg._spaced(j));
-- An item of an array, from DuckDB's text of the item and its type.
CREATE OR REPLACE MACRO pg._item_text(s, type) AS CASE
    WHEN regexp_matches(type, '^(DOUBLE|FLOAT)') THEN pg._float_text(s, if(starts_with(type, 'DOUBLE'), 15, 6))
    WHEN starts_with(type, 'BLOB') THEN '\x' || lower(hex(try_cast(s AS BLOB)))
    WHEN starts_with(type, 'BOOLEAN') THEN left(s, 1) WHEN starts_with(type, 'JSON') THEN pg.jsonb_text(s)
    WHEN regexp_matches(type, '^DECIMAL\(38,1[09]\)') THEN pg.quotient_text(s) ELSE s END;
CREATE OR REPLACE MACRO pg.to_text(x) AS
    CASE
        WHEN typeof(x) = 'BLOB' THEN '\x' || lower(hex(try_cast(x AS BLOB)))
        WHEN typeof(x) = 'DOUBLE' AND abs(try_cast(x AS DOUBLE)) >= 1e24
        THEN sparkwave_float_text(format('{:.16e}', try_cast(x AS DOUBLE)), 15) || ''
        WHEN typeof(x) IN ('DOUBLE', 'FLOAT') THEN pg._float_text(x::VARCHAR, if(typeof(x) = 'DOUBLE', 15, 6))
        WHEN typeof(x) IN ('DECIMAL(38,10)', 'DECIMAL(38,19)') THEN pg.quotient_text(x)
        WHEN typeof(x) = 'INTERVAL' THEN pg._interval_text(pg.interval_from_lake(x))
        WHEN typeof(x) IN ('DATE', 'TIMESTAMP', 'TIMESTAMP WITH TIME ZONE') AND contains(x::VARCHAR, ' (BC)')
        THEN replace(x::VARCHAR, ' (BC)', '') || ' BC'
        WHEN typeof(x) = 'JSON' THEN pg.jsonb_text(x)
        WHEN ends_with(typeof(x), '[]') THEN list_transform([list_transform(
            CASE WHEN typeof(x) LIKE '%[][]' THEN try_cast(x AS VARCHAR[][]) ELSE [try_cast(x AS VARCHAR[])] END,
            lambda r: pg._list_text(list_transform(r, lambda i: pg._item_text(i, typeof(x)))))],
            lambda a: if(typeof(x) LIKE '%[][]', '{' || array_to_string(a, ',') || '}', a[1]))[1]
        ELSE x::VARCHAR END;
CREATE OR REPLACE MACRO pg._type_name(t) AS CASE t
    WHEN 'VARCHAR' THEN 'character varying' WHEN 'DOUBLE' THEN 'double precision' WHEN 'FLOAT' THEN 'real'
    WHEN 'TIMESTAMP' THEN 'timestamp without time zone' WHEN 'TIME' THEN 'time without time zone'
    WHEN 'HUGEINT' THEN 'numeric' WHEN 'BLOB' THEN 'bytea' WHEN 'JSON' THEN 'jsonb' WHEN '"NULL"' THEN 'unknown'
    WHEN 'UINTEGER' THEN 'oid'
    ELSE CASE WHEN starts_with(t, 'DECIMAL') THEN 'numeric' WHEN starts_with(t, 'STRUCT') THEN 'record'
              WHEN starts_with(t, 'UNION') THEN 'json'
              WHEN starts_with(t, 'ENUM') THEN regexp_extract(t, '\x01\[\d+, ".*", "(.*)"\]''\)$', 1)
              ELSE lower(t) END END;
-- The OID of a user's type, whose text begins with its mark; for an enum the mark is the last label
-- (`catalog.types.Type.stored`).
CREATE OR REPLACE MACRO pg._user_type_in(t) AS try_cast(
    CASE WHEN starts_with(t, chr(1)) THEN regexp_extract(t, '^\x01\[(\d+)', 1)
         WHEN starts_with(t, 'ENUM(') THEN regexp_extract(t, '\x01\[(\d+), [^\x01]*$', 1) END AS UINTEGER);
CREATE OR REPLACE MACRO pg.pg_typeof(x) AS
    pg._type_name(regexp_replace(typeof(x), '(\[\])+$', '')) || if(ends_with(typeof(x), '[]'), '[]', '');
-- The text that the value prints as, which for a boolean differs from its cast.
CREATE OR REPLACE MACRO pg.text_out(x) AS CASE typeof(x) WHEN 'BOOLEAN' THEN left(x::VARCHAR, 1) ELSE pg.to_text(x) END;

-- to_char of a number: first its digits, rounded to p places (a float has at most its significant ones); then the
-- pattern (planner/functions/number_patterns.py): w has the digits and commas before the point, k of the p places are
-- shown even if zero, s has the sign, S or MI, and its side of the digits, f is the fill mode. NaN and Infinity count
-- as digits; `#` stands for their missing decimal places.
CREATE OR REPLACE MACRO pg._float_places(whole, p, digits) AS
    greatest(0, least(p, digits - length(whole)))::INTEGER;
CREATE OR REPLACE MACRO pg._float_digits(x, p, digits) AS
    CASE WHEN x IS NULL THEN NULL
         WHEN isfinite(x) THEN format('{:.' || pg._float_places(format('{:.0f}', abs(x)), p, digits) || 'f}', x)
         ELSE if(x < 0, '-', '') || if(isnan(x), 'NaN', 'Infinity') || '.'
              || repeat('#', pg._float_places(if(isnan(x), 'NaN', 'Infinity'), p, digits)) END;
CREATE OR REPLACE MACRO pg._number_digits
    (x BIGINT, p) AS x::VARCHAR || if(p = 0, '', '.' || repeat('0', p)),
    (x DECIMAL(38,10), p) AS split_part(round(x, p)::DECIMAL(38,10)::VARCHAR, '.', 1)
        || if(p = 0, '', '.' || left(rpad(split_part(round(x, p)::DECIMAL(38,10)::VARCHAR, '.', 2), p, '0'), p)),
    (x FLOAT, p) AS pg._float_digits(x, p, 6),
    (x DOUBLE, p) AS pg._float_digits(x, p, 15);
-- With the places behind the point before it.
CREATE OR REPLACE MACRO pg._number_shifted(d) AS regexp_replace(replace(d, '.', ''), '^(-?)0+([0-9])', '\1\2');
CREATE OR REPLACE MACRO pg._number_filled(d, zeros) AS if(length(d) < zeros, lpad(d, zeros::INTEGER, '0'), d);
CREATE OR REPLACE MACRO pg._number_comma(d, behind) AS if(length(d) > behind, ',', ' ');
CREATE OR REPLACE MACRO pg._number_signed(minus, whole, fraction, s, f) AS
    CASE s
        WHEN '' THEN if(f, if(minus, '-', '') || ltrim(whole),
                        lpad(if(minus, '-', ' ') || ltrim(whole), (length(whole) + 1)::INTEGER, ' ')) || fraction
        WHEN 'S_' THEN lpad(if(minus, '-', '+') || ltrim(whole), if(f, length(ltrim(whole)) + 1, length(whole) + 1)::INTEGER, ' ')
                       || fraction
        WHEN '_S' THEN if(f, ltrim(whole), whole) || fraction || if(minus, '-', '+')
        WHEN 'MI_' THEN if(minus, '-', if(f, '', ' ')) || if(f, ltrim(whole), whole) || fraction
        ELSE if(f, ltrim(whole), whole) || fraction || if(minus, '-', if(f, '', ' ')) END;
CREATE OR REPLACE MACRO pg._number_fraction(t, k, f) AS
    CASE WHEN NOT contains(t, '.') OR contains(t, 'N') OR contains(t, 'I') THEN ''
         WHEN f THEN '.' || left(split_part(t, '.', 2), greatest(k, length(rtrim(split_part(t, '.', 2), '0'))))
         ELSE '.' || split_part(t, '.', 2) END;
-- A zero before the point is not shown if the pattern has a fraction, unless nothing else is shown.
CREATE OR REPLACE MACRO pg._number_shown(t, w, k, f) AS
    CASE WHEN split_part(ltrim(t, '-'), '.', 1) = '0' AND contains(t, '.') AND NOT contains(w, '0')
              AND NOT (f AND pg._number_fraction(t, k, f) = '.')
         THEN '' ELSE split_part(ltrim(t, '-'), '.', 1) END;
CREATE OR REPLACE MACRO pg._number_text(t, whole, w, p, k, s, f) AS
    CASE WHEN length(split_part(ltrim(t, '-'), '.', 1)) > length(replace(w, ',', ''))
         THEN pg._number_signed(starts_with(t, '-'), translate(w, '90', '##'),
                                if(p = 0, '', '.' || repeat('#', length(split_part(t, '.', 2)))), s, f)
         ELSE pg._number_signed(starts_with(t, '-'), whole, pg._number_fraction(t, k, f), s, f) END;

-- Text functions. Positions count characters from 1.
CREATE OR REPLACE MACRO pg.length(s VARCHAR) AS length(s)::INTEGER, (s BLOB) AS octet_length(s)::INTEGER;
CREATE OR REPLACE MACRO pg.octet_length(s VARCHAR) AS strlen(s)::INTEGER, (s BLOB) AS octet_length(s)::INTEGER;
CREATE OR REPLACE MACRO pg.bit_length(s VARCHAR) AS strlen(s)::INTEGER * 8, (s BLOB) AS octet_length(s)::INTEGER * 8;
CREATE OR REPLACE MACRO pg.upper(s) AS replace(upper(replace(s, 'ß', chr(1114109))), chr(1114109), 'ß');
-- Unicode's full case folding: lower case, but for letters that have no upper case of their own, or several letters.
CREATE OR REPLACE MACRO pg._folded_letter(c) AS translate(c, 'µſͅςϐϑϕϖϰϱϵᏸᏹᏺᏻᏼᏽᲀᲁᲂᲃᲄᲅᲆᲇᲈẛι' || 'ꭰꭱꭲꭳꭴꭵꭶꭷꭸꭹꭺꭻꭼꭽꭾꭿꮀꮁꮂꮃꮄꮅꮆꮇꮈꮉꮊꮋꮌꮍꮎꮏꮐꮑꮒꮓꮔꮕꮖꮗꮘꮙꮚꮛꮜꮝꮞꮟꮠꮡꮢꮣꮤꮥꮦꮧꮨꮩꮪꮫꮬꮭꮮꮯꮰꮱꮲꮳꮴꮵꮶꮷꮸꮹꮺꮻꮼꮽꮾꮿ',
    'μsισβθφπκρεᏰᏱᏲᏳᏴᏵвдосттъѣꙋṡι' || 'ᎠᎡᎢᎣᎤᎥᎦᎧᎨᎩᎪᎫᎬᎭᎮᎯᎰᎱᎲᎳᎴᎵᎶᎷᎸᎹᎺᎻᎼᎽᎾᎿᏀᏁᏂᏃᏄᏅᏆᏇᏈᏉᏊᏋᏌᏍᏎᏏᏐᏑᏒᏓᏔᏕᏖᏗᏘᏙᏚᏛᏜᏝᏞᏟᏠᏡᏢᏣᏤᏥᏦᏧᏨᏩᏪᏫᏬᏭᏮᏯ');
CREATE OR REPLACE MACRO pg._long_letters() AS 'ßŉǰΐΰևẖẗẘẙẚὐὒὔὖᾀᾁᾂᾃᾄᾅᾆᾇᾐᾑᾒᾓᾔᾕᾖᾗᾠᾡᾢᾣᾤᾥᾦᾧᾲᾳᾴᾶᾷῂῃῄῆῇῒΐῖῗῢΰῤῦῧῲῳῴῶῷﬀﬁﬂﬃﬄﬅﬆﬓﬔﬕﬖﬗ';
CREATE OR REPLACE MACRO pg._folded_long(c) AS string_split('ss ʼn ǰ ΐ ΰ եւ ẖ ẗ ẘ ẙ aʾ ὐ ὒ ὔ ὖ ἀι ἁι ἂι ἃι ἄι ἅι ἆι ἇι ἠι ἡι ἢι ἣι ἤι ἥι ἦι ἧι ὠι'
        || ' ὡι ὢι ὣι ὤι ὥι ὦι ὧι ὰι αι άι ᾶ ᾶι ὴι ηι ήι ῆ ῆι ῒ ΐ ῖ ῗ ῢ ΰ ῤ ῦ ῧ ὼι ωι ώι ῶ ω'
        || '͂ι ff fi fl ffi ffl st st մն մե մի վն մխ', ' ')[strpos(pg._long_letters(), c)];
CREATE OR REPLACE MACRO pg._folded(s) AS if(regexp_matches(s, '[' || pg._long_letters() || ']'),
    array_to_string(list_transform(regexp_extract_all(s, '(?s:.)'),
        lambda c: if(contains(pg._long_letters(), c), pg._folded_long(c), c)), ''), s);
CREATE OR REPLACE MACRO pg.casefold(s) AS
    if(strlen(s) = length(s), lower(s), pg._folded(pg._folded_letter(lower(replace(s, 'İ', 'i̇')))));
CREATE OR REPLACE MACRO pg.initcap(s) AS
    array_to_string(list_transform(regexp_extract_all(s, '[\pL\pN]+|[^\pL\pN]+'),
                                   lambda w: pg.upper(w[1]) || lower(w[2:])), '');
-- greatest and least, but NULL for NULL.
CREATE OR REPLACE MACRO pg._most(n, m) AS if(n < m, m, n);
CREATE OR REPLACE MACRO pg._least(n, m) AS if(n > m, m, n);
CREATE OR REPLACE MACRO pg._length(l) AS
    if(l < 0, pg.raise('22011', 'negative substring length not allowed')::BIGINT, l);
CREATE OR REPLACE MACRO pg.substring
    (s VARCHAR, n BIGINT) AS substring(s, pg._most(n, 1)),
    (s VARCHAR, n BIGINT, l BIGINT) AS
        substring(s, pg._most(n, 1), pg._most(pg._length(l) + pg._least(n, 1) - 1, 0)),
    (s BLOB, n BIGINT) AS unhex(substring(hex(s), 2 * pg._most(n, 1) - 1)),
    (s BLOB, n BIGINT, l BIGINT) AS
        unhex(substring(hex(s), 2 * pg._most(n, 1) - 1, 2 * pg._most(pg._length(l) + pg._least(n, 1) - 1, 0)));
-- A text has at most a gigabyte, and a character at most four bytes.
CREATE OR REPLACE MACRO pg._characters(n) AS
    if(n > 268435455, pg.raise('54000', 'requested length too large'), pg._most(n, 0)::INTEGER);
CREATE OR REPLACE MACRO pg.repeat(s, n) AS
    repeat(s, if(strlen(s)::HUGEINT * n::INTEGER > 1073741823, pg.raise('54000', 'requested length too large'),
                 n::INTEGER));
CREATE OR REPLACE MACRO pg._step(s) AS
    list_extract([s], if(s = s - s, pg.raise('22023', 'step size cannot equal zero'), 1));
CREATE OR REPLACE MACRO pg._offset(n) AS
    if(n::BIGINT < 0, pg.raise('2201X', 'OFFSET must not be negative'), n::BIGINT);
CREATE OR REPLACE MACRO pg.lpad
    (s, n) AS lpad(s, pg._characters(n), ' '),
    (s, n, f) AS CASE WHEN f = '' THEN left(s, pg._most(n, 0)) ELSE lpad(s, pg._characters(n), f) END;
CREATE OR REPLACE MACRO pg.rpad
    (s, n) AS rpad(s, pg._characters(n), ' '),
    (s, n, f) AS CASE WHEN f = '' THEN left(s, pg._most(n, 0)) ELSE rpad(s, pg._characters(n), f) END;
-- Bytes are trimmed and searched as hexadecimal digits, two a byte.
CREATE OR REPLACE MACRO pg._any_bytes(b) AS '(?:' || array_to_string(regexp_extract_all(hex(b), '..'), '|') || ')+';
CREATE OR REPLACE MACRO pg.btrim(s VARCHAR) AS trim(s, ' '), (s VARCHAR, c VARCHAR) AS trim(s, c),
    (s BLOB, c BLOB) AS unhex(regexp_replace(regexp_replace(hex(s), '^' || pg._any_bytes(c), ''), pg._any_bytes(c) || '$', ''));
CREATE OR REPLACE MACRO pg.ltrim(s VARCHAR) AS ltrim(s, ' '), (s VARCHAR, c VARCHAR) AS ltrim(s, c),
    (s BLOB, c BLOB) AS unhex(regexp_replace(hex(s), '^' || pg._any_bytes(c), ''));
CREATE OR REPLACE MACRO pg.rtrim(s VARCHAR) AS rtrim(s, ' '), (s VARCHAR, c VARCHAR) AS rtrim(s, c),
    (s BLOB, c BLOB) AS unhex(regexp_replace(hex(s), pg._any_bytes(c) || '$', ''));
CREATE OR REPLACE MACRO pg.translate(s, a, b) AS translate(s, a, b);
CREATE OR REPLACE MACRO pg.reverse(s) AS
    if(strlen(s) = length(s), reverse(s), array_to_string(list_reverse(regexp_extract_all(s, '(?s:.)')), ''));
CREATE OR REPLACE MACRO pg.strpos
    (s VARCHAR, p VARCHAR) AS CASE WHEN p = '' THEN if(s IS NULL, NULL, 1) ELSE strpos(s, p)::INTEGER END,
    (s BLOB, p BLOB) AS CASE WHEN s IS NOT NULL AND p IS NOT NULL THEN coalesce(list_filter(
        range(1, octet_length(s) - octet_length(p) + 2),
        lambda i: substring(hex(s), 2 * i - 1, 2 * octet_length(p)) = hex(p))[1], 0)::INTEGER END;
CREATE OR REPLACE MACRO pg.split_part(s, d, n) AS
    CASE WHEN s IS NULL OR n IS NULL OR d IS NULL THEN NULL
         WHEN n = 0 THEN pg.raise('22023', 'field position must not be zero')::VARCHAR WHEN d = '' THEN if(n IN (1, -1), s, '') ELSE split_part(s, d, n) END;
CREATE OR REPLACE MACRO pg._place(n) AS
    if(n <= 0, pg.raise('22011', 'negative substring length not allowed'), n);
CREATE OR REPLACE MACRO pg.overlay
    (s VARCHAR, r VARCHAR, n BIGINT) AS substring(s, 1, pg._place(n) - 1) || r
        || substring(s, pg._most((n + length(r))::INTEGER, 1)),
    (s VARCHAR, r VARCHAR, n BIGINT, l BIGINT) AS substring(s, 1, pg._place(n) - 1) || r
        || substring(s, pg._most((n + l)::INTEGER, 1)),
    (s BLOB, r BLOB, n BIGINT) AS unhex(substring(hex(s), 1, 2 * (pg._place(n) - 1)) || hex(r)
        || substring(hex(s), 2 * pg._most(n + octet_length(r), 1) - 1)),
    (s BLOB, r BLOB, n BIGINT, l BIGINT) AS unhex(substring(hex(s), 1, 2 * (pg._place(n) - 1)) || hex(r)
        || substring(hex(s), 2 * pg._most(n + l, 1) - 1));
CREATE OR REPLACE MACRO pg.ascii(s) AS if(s = '', 0, unicode(s))::INTEGER;
CREATE OR REPLACE MACRO pg.chr(n) AS
    CASE WHEN n = 0 THEN pg.raise('54000', 'null character not permitted')::VARCHAR
         WHEN n < 0 THEN pg.raise('22023', 'character number must be positive')::VARCHAR
         WHEN n > 1114111 THEN pg.raise('54000', 'requested character too large for encoding: ' || n)::VARCHAR
         WHEN n BETWEEN 55296 AND 57343
         THEN pg.raise('54000', 'requested character not valid for encoding: ' || n)::VARCHAR
         ELSE chr(n::INTEGER) END;
CREATE OR REPLACE MACRO pg.md5(s) AS md5(s);
-- A text of a function in Python, or its error.
CREATE OR REPLACE MACRO pg._told(t) AS t || CASE WHEN starts_with(t, chr(30)) THEN CAST(t AS INTEGER)::VARCHAR ELSE '' END;
CREATE OR REPLACE MACRO pg._digest(b, name) AS unhex(sparkwave_digest(hex(b), name));
CREATE OR REPLACE MACRO pg.sha224(b) AS pg._digest(b, 'sha224');
CREATE OR REPLACE MACRO pg.sha384(b) AS pg._digest(b, 'sha384');
CREATE OR REPLACE MACRO pg.sha512(b) AS pg._digest(b, 'sha512');
CREATE OR REPLACE MACRO pg.hmac(secret, content, name) AS
    unhex(pg._told(sparkwave_hmac(hex(encode(secret)) || ':' || hex(content), name)));
CREATE OR REPLACE MACRO pg._cipher(name, data, secret, start, kind) AS
    unhex(pg._told(sparkwave_cipher(name, [hex(data), hex(secret), hex(start), kind])));
CREATE OR REPLACE MACRO pg.encrypt(data, secret, kind) AS pg._cipher('encrypt', data, secret, ''::BLOB, kind);
CREATE OR REPLACE MACRO pg.decrypt(data, secret, kind) AS pg._cipher('decrypt', data, secret, ''::BLOB, kind);
CREATE OR REPLACE MACRO pg.encrypt_iv(data, secret, start, kind) AS pg._cipher('encrypt', data, secret, start, kind);
CREATE OR REPLACE MACRO pg.decrypt_iv(data, secret, start, kind) AS pg._cipher('decrypt', data, secret, start, kind);
-- Messages are random, so that DuckDB has to make each by itself.
CREATE OR REPLACE MACRO pg._sealed(name, data, password, options) AS
    unhex(list_transform([sparkwave_sealed(name, [hex(data), password, options])], lambda t: pg._told(t))[1]);
CREATE OR REPLACE MACRO pg._opened(name, data, password, options) AS
    unhex(pg._told(sparkwave_opened(name, [hex(data), password, options])));
CREATE OR REPLACE MACRO pg.pgp_sym_encrypt
    (data, password) AS pg._sealed('pgp_sym_encrypt', encode(data), password, ''),
    (data, password, options) AS pg._sealed('pgp_sym_encrypt', encode(data), password, options);
CREATE OR REPLACE MACRO pg.pgp_sym_encrypt_bytea
    (data, password) AS pg._sealed('pgp_sym_encrypt_bytea', data, password, ''),
    (data, password, options) AS pg._sealed('pgp_sym_encrypt_bytea', data, password, options);
CREATE OR REPLACE MACRO pg.pgp_sym_decrypt
    (data, password) AS decode(pg._opened('pgp_sym_decrypt', data, password, '')),
    (data, password, options) AS decode(pg._opened('pgp_sym_decrypt', data, password, options));
CREATE OR REPLACE MACRO pg.pgp_sym_decrypt_bytea
    (data, password) AS pg._opened('pgp_sym_decrypt_bytea', data, password, ''),
    (data, password, options) AS pg._opened('pgp_sym_decrypt_bytea', data, password, options);
CREATE OR REPLACE MACRO pg.is_json(s, kind) AS CAST(sparkwave_is_json(s, kind) AS BOOLEAN);
CREATE OR REPLACE MACRO pg.unistr(s) AS CAST(pg._told(sparkwave_unistr(s, '')) AS VARCHAR);
CREATE OR REPLACE MACRO pg.is_normalized(s, form) AS CAST(sparkwave_is_normalized(s, form) AS BOOLEAN);
CREATE OR REPLACE MACRO pg.format_of(template, texts) AS
    CAST(pg._told(sparkwave_format(template, coalesce(texts, []))) AS VARCHAR);
CREATE OR REPLACE MACRO pg.int8send(n) AS unhex(lpad(hex(n::BIGINT), 16, '0'));
CREATE OR REPLACE MACRO pg.int8recv(b) AS CASE
    WHEN octet_length(b) < 8 THEN pg.raise('22P03', 'insufficient data left in message')
    WHEN octet_length(b) > 8 THEN pg.raise('22P03', 'incorrect binary data format')
    WHEN hex(b) < '8' THEN ('0x' || hex(b))::BIGINT
    ELSE -1 - ('0x' || translate(hex(b), '0123456789ABCDEF', 'FEDCBA9876543210'))::BIGINT END;
CREATE OR REPLACE MACRO pg.sha256(s) AS unhex(sha256(s));
CREATE OR REPLACE MACRO pg.sha1(s) AS unhex(sha1(s));
-- Cyclic redundancy checks of 32 bits, by four bits at a time, the lower four of each byte first.
CREATE OR REPLACE MACRO pg._half_bytes(h) AS list_transform(range(length(h)), lambda i:
    strpos('123456789ABCDEF', h[i // 2 * 2 + 2 - i % 2])::BIGINT);
CREATE OR REPLACE MACRO pg._crc(b, remainders) AS CASE WHEN b IS NOT NULL THEN xor(4294967295, list_reduce(
    list_prepend(4294967295::BIGINT, pg._half_bytes(hex(b))),
    lambda _rest, _half: xor(remainders[xor(_rest & 15, _half) + 1], _rest >> 4))) END;
CREATE OR REPLACE MACRO pg._crc32(b) AS pg._crc(b, [0, 498536548, 997073096, 651767980, 1994146192, 1802195444, 1303535960, 1342533948, 3988292384,
        4027552580, 3604390888, 3412177804, 2607071920, 2262029012, 2685067896, 3183342108]::BIGINT[]);
CREATE OR REPLACE MACRO pg._crc32c(b) AS pg._crc(b, [0, 274646895, 549293790, 820201905, 1098587580, 1361435347, 1640403810, 1905808397, 2197175160,
        2460548119, 2722870694, 2987750089, 3280807620, 3553878443, 3811616794, 4084100981]::BIGINT[]);
CREATE OR REPLACE MACRO pg.crc32(s VARCHAR) AS pg._crc32(encode(s)), (b BLOB) AS pg._crc32(b);
CREATE OR REPLACE MACRO pg.crc32c(s VARCHAR) AS pg._crc32c(encode(s)), (b BLOB) AS pg._crc32c(b);
CREATE OR REPLACE MACRO pg._utf8(name) AS if(regexp_replace(lower(name), '[^a-z0-9]', '', 'g') = 'utf8', name,
    pg.raise('0A000', 'conversion of encoding "' || name || '" is not supported')::VARCHAR);
-- The hexadecimal digits from the first byte on that begins no character: it says how many bytes a character would have.
CREATE OR REPLACE MACRO pg._behind_characters(h) AS substr(h, length(regexp_extract(h, '^(?:0[1-9A-F]|[1-7].'
    || '|(?:C[2-9A-F]|D.|E0[AB].|E[1-9ABCEF][89AB].|ED[89].|(?:F0[9AB].|F[1-3][89AB].|F48.)[89AB].)[89AB].)*')) + 1);
CREATE OR REPLACE MACRO pg._first_bytes(h) AS regexp_extract_all(h, '..')[:CASE
    WHEN h < 'C' THEN 1 WHEN h < 'E' THEN 2 WHEN h < 'F' THEN 3 WHEN h < 'F8' THEN 4 ELSE 1 END];
CREATE OR REPLACE MACRO pg._raise_not_utf8(h) AS pg.raise('22021', 'invalid byte sequence for encoding "UTF8": '
    || array_to_string(list_transform(pg._first_bytes(h), lambda e: '0x' || lower(e)), ' '))::VARCHAR;
CREATE OR REPLACE MACRO pg._decoded(b) AS CASE WHEN b IS NOT NULL THEN
    if(contains(TRY(decode(b)), chr(0)) IS DISTINCT FROM false, pg._raise_not_utf8(pg._behind_characters(hex(b))),
    decode(b)) END;
CREATE OR REPLACE MACRO pg.convert_from(b, name) AS CASE WHEN pg._utf8(name) IS NOT NULL THEN pg._decoded(b) END;
CREATE OR REPLACE MACRO pg.convert_to(s, name) AS CASE WHEN pg._utf8(name) IS NOT NULL THEN encode(s) END;
-- In an encoding whose bytes are these characters, the last of Unicode being none (planner/functions/encodings.py).
CREATE OR REPLACE MACRO pg._bytes_shown(h) AS
    array_to_string(list_transform(regexp_extract_all(lower(h), '..'), lambda e: '0x' || e), ' ');
CREATE OR REPLACE MACRO pg._character_of(h, characters, name) AS list_transform(
    [characters[('0x' || h)::INTEGER + 1]], lambda c: CASE WHEN c <> chr(1114109) THEN c
    WHEN h = '00' THEN pg.raise('22021', 'invalid byte sequence for encoding "' || name || '": 0x00')::VARCHAR
    ELSE pg.raise('22P05', 'character with byte sequence ' || pg._bytes_shown(h) || ' in encoding "' || name
                  || '" has no equivalent in encoding "UTF8"')::VARCHAR END)[1];
CREATE OR REPLACE MACRO pg._decoded_by(b, characters, name) AS array_to_string(list_transform(
    regexp_extract_all(hex(b), '..'), lambda h: pg._character_of(h, characters, name)), '');
CREATE OR REPLACE MACRO pg._byte_of(c, characters, name) AS if(contains(characters, c), printf('%02X', strpos(characters, c) - 1),
    pg.raise('22P05', 'character with byte sequence ' || pg._bytes_shown(hex(encode(c)))
             || ' in encoding "UTF8" has no equivalent in encoding "' || name || '"')::VARCHAR);
CREATE OR REPLACE MACRO pg._encoded_by(s, characters, name) AS unhex(array_to_string(list_transform(
    regexp_extract_all(s, '(?s:.)'), lambda c: pg._byte_of(c, characters, name)), ''));
CREATE OR REPLACE MACRO pg._byte_at(b, n) AS if(n >= 0 AND n < octet_length(b), n, pg.raise('2202E',
    'index ' || n || ' out of valid range, 0..' || (octet_length(b) - 1)));
CREATE OR REPLACE MACRO pg.get_byte(b, n) AS ('0x' || substr(hex(b), 2 * pg._byte_at(b, n) + 1, 2))::INTEGER;
CREATE OR REPLACE MACRO pg.set_byte(b, n, v) AS unhex(left(hex(b), 2 * pg._byte_at(b, n)) ||
    right('0' || hex(v & 255), 2) || substr(hex(b), 2 * pg._byte_at(b, n) + 3));
-- Bits are numbered from the lowest bit of the first byte.
CREATE OR REPLACE MACRO pg._bit_at(b, n) AS if(n >= 0 AND n < octet_length(b) * 8, n, pg.raise('2202E',
    'index ' || n || ' out of valid range, 0..' || (octet_length(b) * 8 - 1)));
CREATE OR REPLACE MACRO pg._byte_of_bit(b, n) AS pg.get_byte(b, pg._bit_at(b, n) // 8);
CREATE OR REPLACE MACRO pg.get_bit(b, n) AS (pg._byte_of_bit(b, n) >> (n % 8)::INTEGER) & 1;
CREATE OR REPLACE MACRO pg.set_bit(b, n, v) AS CASE
    WHEN v NOT IN (0, 1) THEN pg.raise('22023', 'new bit must be 0 or 1')::VARCHAR::BLOB
    ELSE pg.set_byte(b, n // 8, pg._byte_of_bit(b, n) & ~(1 << (n % 8)::INTEGER) | (v << (n % 8)::INTEGER)) END;
CREATE OR REPLACE MACRO pg.bit_count(b) AS if(octet_length(b) = 0, 0, bit_count(b::BIT));
CREATE OR REPLACE MACRO pg._escaped(b) AS array_to_string(list_transform(range(octet_length(b)), lambda n: CASE
    WHEN pg.get_byte(b, n) = 0 OR pg.get_byte(b, n) > 127 THEN printf('\%03o', pg.get_byte(b, n))
    WHEN pg.get_byte(b, n) = 92 THEN '\\' ELSE chr(pg.get_byte(b, n)) END), '');
CREATE OR REPLACE MACRO pg.encode(b, f) AS
    CASE lower(f) WHEN 'hex' THEN lower(hex(b))
        WHEN 'base64' THEN regexp_replace(to_base64(b), '.{76}', E'\\0\n', 'g') WHEN 'escape' THEN pg._escaped(b)
        ELSE pg.raise('22023', 'unrecognized encoding: "' || f || '"')::VARCHAR END;
CREATE OR REPLACE MACRO pg._unescaped(s) AS CASE
    WHEN NOT regexp_full_match(s, '(?s)([^\\]|\\\\|\\[0-3][0-7][0-7])*')
    THEN pg.raise('22P02', 'invalid input syntax for type bytea')::VARCHAR::BLOB
    ELSE unhex(array_to_string(list_transform(regexp_extract_all(s, '(?s)\\\\|\\[0-3][0-7][0-7]|[^\\]+'),
        lambda e: CASE WHEN e = '\\' THEN '5C' WHEN e[1] <> '\' THEN hex(encode(e))
            ELSE printf('%02X', e[2]::INTEGER * 64 + e[3]::INTEGER * 8 + e[4]::INTEGER) END), '')) END;
-- Bytes by pairs of hexadecimal digits, with white space between them.
CREATE OR REPLACE MACRO pg._of_hex(s) AS unhex(if(regexp_full_match(s, '([0-9a-fA-F]{2}|[ \n\t\r])*'),
    regexp_replace(s, '\s', '', 'g'),
    pg.raise('22023', if(regexp_full_match(s, '[0-9a-fA-F\s]*'), 'invalid hexadecimal data: odd number of digits',
        'invalid hexadecimal digit: "' || left(regexp_replace(s, '^[0-9a-fA-F\s]*', ''), 1) || '"'))::VARCHAR));
CREATE OR REPLACE MACRO pg._wrong_base64(s) AS pg.raise('22023', if(regexp_full_match(s, '[A-Za-z0-9+/=]*'),
    if(contains(rtrim(s, '='), '='), 'unexpected "=" while decoding base64 sequence', 'invalid base64 end sequence'),
    'invalid symbol "' || left(regexp_replace(s, '^[A-Za-z0-9+/=]*', ''), 1) || '" found while decoding base64 sequence'))
    ::VARCHAR::BLOB;
CREATE OR REPLACE MACRO pg._of_base64(s) AS
    if(regexp_full_match(s, '([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?'), from_base64(s), pg._wrong_base64(s));
CREATE OR REPLACE MACRO pg.decode(s, f) AS
    CASE lower(f) WHEN 'hex' THEN pg._of_hex(s) WHEN 'base64' THEN pg._of_base64(regexp_replace(s, '[ \n\t\r]', '', 'g'))
        WHEN 'escape' THEN pg._unescaped(s)
        ELSE pg.raise('22023', 'unrecognized encoding: "' || f || '"')::VARCHAR::BLOB END;
-- Text to bytes: hex after \x, else the text with escapes of backslashes and of bytes in octal.
CREATE OR REPLACE MACRO pg.bytea_in(s) AS CASE
    WHEN NOT contains(s, '\') THEN encode(s)
    WHEN starts_with(s, '\x') THEN pg._of_hex(substring(s, 3))
    ELSE pg._unescaped(s) END;
-- The elements of an array's text, as texts: NULL, quoted ones without their quotes, or the texts of arrays.
CREATE OR REPLACE MACRO pg.array_in(s) AS CASE
    WHEN regexp_matches(s, '^\s*\{\s*\{') THEN
        pg.raise('0A000', 'an array of arrays is not read as an array of one dimension')::VARCHAR::VARCHAR[]
    WHEN NOT regexp_full_match(s, '(?s)\s*\{\s*(?:(?:"(?:[^"\\]|\\.)*"|(?:[^\s,{}"\\]|\\.)(?:[^,{}"\\]|\\.)*)(?:\s*,\s*(?:"(?:[^"\\]|\\.)*"|(?:[^\s,{}"\\]|\\.)(?:[^,{}"\\]|\\.)*))*)?\s*\}\s*')
        THEN pg.raise('22P02', 'malformed array literal: "' || s || '"')::VARCHAR::VARCHAR[]
    ELSE list_transform(regexp_extract_all(regexp_extract(s, '(?s)\{(.*)\}', 1), '(?s)(?:"(?:[^"\\]|\\.)*"|(?:[^\s,{}"\\]|\\.)(?:[^,{}"\\]|\\.)*)'),
        lambda e: CASE WHEN e[1] = '"' THEN regexp_replace(e[2:-2], '(?s)\\(.)', '\1', 'g')
            WHEN upper(rtrim(e)) = 'NULL' THEN NULL ELSE regexp_replace(rtrim(e), '(?s)\\(.)', '\1', 'g') END) END;
CREATE OR REPLACE MACRO pg.arrays_in(s) AS CASE
    WHEN NOT regexp_full_match(s, '(?s)\s*\{\s*(?:\{[^{}]*\}(?:\s*,\s*\{[^{}]*\})*)?\s*\}\s*')
        THEN pg.raise('22P02', 'malformed array literal: "' || s || '"')::VARCHAR::VARCHAR[]
    ELSE regexp_extract_all(regexp_extract(s, '(?s)\{(.*)\}', 1), '(?s)\{[^{}]*\}') END;
-- A text that is an integer; DuckDB would round others.
CREATE OR REPLACE MACRO pg.integer_in(s, type) AS CASE WHEN regexp_full_match(s, '\s*[+-]?[0-9]+\s*') THEN s
    ELSE pg.raise('22P02', 'invalid input syntax for type ' || type || ': "' || s || '"')::VARCHAR END;
CREATE OR REPLACE MACRO pg.as_smallint(s VARCHAR) AS pg.integer_in(s, 'smallint'), (x) AS x;
CREATE OR REPLACE MACRO pg.as_integer(s VARCHAR) AS pg.integer_in(s, 'integer'), (x) AS x;
CREATE OR REPLACE MACRO pg.as_bigint(s VARCHAR) AS pg.integer_in(s, 'bigint'), (x) AS x;
CREATE OR REPLACE MACRO pg.boolean_in(s) AS CASE
    WHEN trim(lower(s), E' \t\n\r\f\v') IN ('t', 'tr', 'tru', 'true', 'y', 'ye', 'yes', 'on', '1') THEN true
    WHEN trim(lower(s), E' \t\n\r\f\v') IN ('f', 'fa', 'fal', 'fals', 'false', 'n', 'no', 'of', 'off', '0') THEN false
    ELSE pg.raise('22P02', 'invalid input syntax for type boolean: "' || s || '"')::BOOLEAN END;
CREATE OR REPLACE MACRO pg.as_boolean(s VARCHAR) AS pg.boolean_in(s), (x) AS x;
-- The array that a text or an array means, for a value whose type the planner does not know.
CREATE OR REPLACE MACRO pg.as_array(s VARCHAR) AS pg.array_in(s), (x) AS x;
CREATE OR REPLACE MACRO pg.as_arrays(s VARCHAR) AS list_transform(pg.arrays_in(s), lambda e: pg.array_in(e)), (x) AS x;
CREATE OR REPLACE MACRO pg.to_bytea(x BLOB) AS x, (x) AS pg.bytea_in(x);
CREATE OR REPLACE MACRO pg.to_hex(n INTEGER) AS lower(hex(n & 4294967295)), (n BIGINT) AS lower(hex(n));
-- The cast is for DESCRIBE, where a parameter is NULL, which alone would be an integer.
CREATE OR REPLACE MACRO pg.quote_literal(x) AS
    (if(contains(pg.text_out(x), '\'), 'E', '') || '''' || replace(replace(pg.text_out(x), '''', ''''''), '\', '\\') || '''')::VARCHAR;
CREATE OR REPLACE MACRO pg.quote_nullable(x) AS coalesce(pg.quote_literal(x), 'NULL');
CREATE OR REPLACE MACRO pg.quote_ident(s) AS
    CASE WHEN regexp_full_match(s, '[a-z_][a-z0-9_]*') AND s NOT IN (QUOTED_WORDS) THEN s ELSE '"' || replace(s, '"', '""') || '"' END;
-- In a view this stands within TRY, from which DuckDB takes out what is there more than once, but no CASE.
CREATE OR REPLACE MACRO pg.identifier(x) AS CASE WHEN pg.text_out(x) IS NULL
    THEN pg.raise('22004', 'null values cannot be formatted as an SQL identifier')::VARCHAR
    ELSE pg.quote_ident(pg.text_out(x)) END;
-- A text of format with at least this width, to the left of its spaces for a negative one.
CREATE OR REPLACE MACRO pg.padded(s, width) AS concat(repeat(' ', width::BIGINT - length(coalesce(s, ''))), s,
    repeat(' ', -width::BIGINT - length(coalesce(s, ''))));

-- What a function gives for a pattern that RE2 has not; an array is JSON.
CREATE OR REPLACE MACRO pg.regexp_text(name, texts) AS pg._told(sparkwave_regexp(name, texts));
-- Patterns. A dot also matches a line end; the flag `g` means all matches.
CREATE OR REPLACE MACRO pg.normalize(s) AS nfc_normalize(s),
    (s, form) AS CAST(pg._told(sparkwave_normalize(s, form)) AS VARCHAR);
CREATE OR REPLACE MACRO pg.regexp_like(s, p) AS regexp_matches(s, p, 's'), (s, p, f) AS regexp_matches(s, p, 's' || f);
CREATE OR REPLACE MACRO pg.regexp_ilike(s, p) AS regexp_matches(s, p, 'is');
-- A replacement in RE2's form: a backslash stands only before a digit (a group) or another backslash, since RE2 returns
-- the text unchanged for a replacement that it cannot read. Groups that do not exist are empty.
CREATE OR REPLACE MACRO pg._groups_in(p) AS len(regexp_extract_all(p, '\(')) - len(regexp_extract_all(p, '\(\?'))
    + len(regexp_extract_all(p, '\(\?P?<[^=!]'));
CREATE OR REPLACE MACRO pg._groups(p) AS pg._groups_in(regexp_replace(p, '(?s)\\.|\[\^?\]?[^\]]*\]', '', 'g'));
CREATE OR REPLACE MACRO pg._known_groups(r, n) AS if(n < 9, regexp_replace(r, '\\[' || (n + 1) || '-9]', '', 'g'), r);
CREATE OR REPLACE MACRO pg._rewrite(r, p) AS
    replace(pg._known_groups(replace(
        regexp_replace(replace(r, '\\', chr(1114109)), '\\([^1-9&]|$)', '\\\\\1', 'g'),
        '\&', '\0'), pg._groups(p)), chr(1114109), '\\');
CREATE OR REPLACE MACRO pg.regexp_replace
    (s, p, r) AS regexp_replace(s, p, if(contains(r, '\'), pg._rewrite(r, p), r), 's'),
    (s, p, r, f) AS regexp_replace(s, p, if(contains(r, '\'), pg._rewrite(r, p), r), 's' || f);
CREATE OR REPLACE MACRO pg._rest(s, n) AS
    CASE WHEN n < 1 THEN pg.raise('22023', 'invalid value for parameter "start": ' || n)::VARCHAR
         WHEN n > length(s) + 1 THEN NULL ELSE substring(s, n) END;
CREATE OR REPLACE MACRO pg._behind_start(s, n, replaced) AS if(n > length(s) + 1, s, left(s, n - 1) || replaced);
-- The place of a match, or with ends = 1 of the character behind it, by whether there is one and what is before it.
CREATE OR REPLACE MACRO pg._place_of(is_found, before, match, s, start, ends) AS CASE
    WHEN ends NOT IN (0, 1) THEN pg.raise('22023', 'invalid value for parameter "endoption": ' || ends)
    WHEN is_found THEN (start + length(before) + if(ends = 1, length(match), 0))::INTEGER
    WHEN NOT is_found OR start > length(s) + 1 THEN 0 END;
CREATE OR REPLACE MACRO pg._match_number(n) AS
    if(n < 1, pg.raise('22023', 'invalid value for parameter "n": ' || n)::BIGINT, n);
CREATE OR REPLACE MACRO pg.regexp_count(s, p) AS len(regexp_extract_all(s, p, 0, 's'))::INTEGER,
    (s, p, n) AS if(n > length(s) + 1 AND p IS NOT NULL, 0, len(regexp_extract_all(pg._rest(s, n), p, 0, 's')))::INTEGER,
    (s, p, n, f) AS if(n > length(s) + 1 AND p IS NOT NULL AND f IS NOT NULL, 0,
        len(regexp_extract_all(pg._rest(s, n), p, 0, 's' || f)))::INTEGER;
-- A pattern that also matches the empty string splits between any two characters, but not next to another match.
CREATE OR REPLACE MACRO pg.regexp_split_to_array(s, p) AS CASE
    WHEN s IS NULL OR p IS NULL THEN NULL
    WHEN regexp_matches('', '^(?:' || p || ')$') AND s <> '' THEN list_concat(
        if(regexp_extract(s, '(?s)^(?:' || p || ')') = '', [], ['']),
        list_filter(string_split_regex(s, '(?s)' || p), lambda e: e <> ''),
        if(regexp_extract(s, '(?s)(?:' || p || ')$') = '', [], ['']))
    ELSE string_split_regex(s, '(?s)' || p) END;
-- SQL's regular expressions, which match whole texts: their tokens are an escaped character, a class in brackets, or a
-- character. An escaped double quote separates the part before and behind the one that substring() returns; a match
-- of the part before is as short as possible, if that matters (is_lazy).
CREATE OR REPLACE MACRO pg._escape(e) AS if(length(e) > 1, pg.raise_with('22025', 'invalid escape string', '',
    'Escape string must be empty or one character.')::VARCHAR, e);
CREATE OR REPLACE MACRO pg._similar_tokens(p, e) AS
    regexp_extract_all(p, if(e = '', '', '\Q' || e || '\E(?s:.)|') || '\[[^\]]*\]?|(?s:.)');
CREATE OR REPLACE MACRO pg._separator(n) AS CASE n WHEN 0 THEN '){1,1}?(' WHEN 1 THEN '){1,1}(?:' ELSE
    pg.raise('2200C', 'SQL regular expression may not contain more than two escape-double-quote separators')::VARCHAR END;
CREATE OR REPLACE MACRO pg._similar_token(t, e, before, is_lazy) AS CASE
    WHEN e <> '' AND t = e || '"' THEN pg._separator(before)
    WHEN e <> '' AND starts_with(t, e)
    THEN if(regexp_matches(t[2:], '[0-9A-Za-z]'), '\' || t[2:], if(t = e, '', '\Q' || t[2:] || '\E'))
    WHEN t[1] = '[' THEN replace(t, '\', '\\') WHEN t = '_' THEN '.' WHEN t = '(' THEN '(?:'
    WHEN t = '%' THEN '.*' || if(is_lazy AND before = 0, '?', '')
    WHEN t IN ('*', '+', '?', '}') THEN t || if(is_lazy AND before = 0, '?', '')
    WHEN t IN ('\', '.', '^', '$') THEN '\' || t ELSE t END;
CREATE OR REPLACE MACRO pg._similar_pattern(p, e, is_lazy) AS '^(?:' || array_to_string(list_transform(
    [pg._similar_tokens(p, e)], lambda _tokens: list_transform(_tokens, lambda _t, _place: pg._similar_token(_t, e,
        len(list_filter(_tokens[:_place - 1], lambda _before: e <> '' AND _before = e || '"')), is_lazy)))[1], '') || ')$';
CREATE OR REPLACE MACRO pg.similar_to
    (s, p) AS regexp_matches(s, pg._similar_pattern(p, '\', false), 's'),
    (s, p, e) AS regexp_matches(s, pg._similar_pattern(p, pg._escape(e), false), 's');
CREATE OR REPLACE MACRO pg._has_part(p, e) AS e <> '' AND list_contains(pg._similar_tokens(p, e), e || '"');
CREATE OR REPLACE MACRO pg.substring_similar(s, p, e) AS CASE WHEN pg.similar_to(s, p, e) THEN
    if(NOT pg._has_part(p, e), s, if(list_contains(pg._similar_tokens(p, e), '|'),
       pg.raise('0A000', 'alternatives beside escape-double-quote separators are not supported')::VARCHAR,
       regexp_extract(s, pg._similar_pattern(p, e, true), 1, 's'))) END;
CREATE OR REPLACE MACRO pg.string_to_array
    (s, d) AS CASE WHEN s IS NULL THEN NULL WHEN s = '' THEN []::VARCHAR[] WHEN d IS NULL THEN regexp_extract_all(s, '(?s:.)')
                   WHEN d = '' THEN [s] ELSE string_split(s, d) END,
    (s, d, n) AS list_transform(
        CASE WHEN s IS NULL THEN NULL WHEN s = '' THEN []::VARCHAR[] WHEN d IS NULL THEN regexp_extract_all(s, '(?s:.)')
             WHEN d = '' THEN [s] ELSE string_split(s, d) END, lambda e: nullif(e, n));
-- With a delimiter that may differ by row: it is written before each element but the first.
CREATE OR REPLACE MACRO pg._joined_by(_texts, d) AS coalesce(array_to_string(list_transform(_texts,
    lambda _text, _place: if(_place = 1, '', d) || _text), ''), '');
CREATE OR REPLACE MACRO pg.array_to_string_by
    (a, d) AS CASE WHEN a IS NOT NULL AND d IS NOT NULL THEN pg._joined_by(
        list_transform(list_filter(a, lambda e: e IS NOT NULL), lambda e: pg.text_out(e)), d) END,
    (a, d, n) AS CASE WHEN a IS NOT NULL AND d IS NOT NULL THEN pg._joined_by(
        list_filter(list_transform(a, lambda e: coalesce(pg.text_out(e), n)), lambda e: e IS NOT NULL), d) END;
CREATE OR REPLACE MACRO pg.array_to_string
    (a, d) AS CASE WHEN d IS NULL THEN NULL WHEN len(a) = 0 THEN '' ELSE coalesce(
        array_to_string(list_transform(list_filter(a, lambda e: e IS NOT NULL), lambda e: pg.text_out(e)), d),
        if(a IS NULL, NULL, '')) END,
    (a, d, n) AS CASE WHEN d IS NULL THEN NULL WHEN len(a) = 0 THEN '' ELSE
        array_to_string(list_transform(a, lambda e: coalesce(pg.text_out(e), n)), d) END;

-- A time cut and rounded to PostgreSQL's modifier of its type (AdjustTimestampForTypmod, AdjustIntervalForTypmod).
CREATE OR REPLACE MACRO pg._rounded_us(us, digits) AS if(digits > 5, us,
    sign(us)::BIGINT * ((abs(us) + pg._ten_to(6 - digits) // 2) // pg._ten_to(6 - digits) * pg._ten_to(6 - digits)));
-- Microseconds since 2000, from which halves are rounded away.
CREATE OR REPLACE MACRO pg._since_2000(x) AS epoch_us(x) - 946684800000000;
CREATE OR REPLACE MACRO pg._rounded_moment(x, digits) AS if(isfinite(x),
    x + to_microseconds(pg._rounded_us(pg._since_2000(x), digits) - pg._since_2000(x)), x);
CREATE OR REPLACE MACRO pg._cut_us(us, fields, digits) AS CASE WHEN fields IN (2, 4, 6, 8) THEN 0
    WHEN fields IN (1024, 1032) THEN us - us % 3600000000 WHEN fields IN (2048, 3072, 3080) THEN us - us % 60000000
    ELSE pg._rounded_us(us, digits) END;
CREATE OR REPLACE MACRO pg._cut_interval(x, fields, digits) AS list_transform(
    [[datepart('year', x) * 12 + datepart('month', x), datepart('day', x), pg._micros(x)]],
    lambda _i: to_months((_i[1] - if(fields = 4, _i[1] % 12, 0))::INTEGER)
        + to_days(if(fields IN (2, 4, 6), 0, _i[2])::INTEGER) + to_microseconds(pg._cut_us(_i[3], fields, digits)))[1];
CREATE OR REPLACE MACRO pg._to_modifier
    (x TIMESTAMP, n) AS pg._rounded_moment(x, n), (x TIMESTAMPTZ, n) AS pg._rounded_moment(x, n),
    (x TIME, n) AS if(pg._rounded_us(epoch_us(x), n) = 86400000000, TIME '24:00:00',
                      x + to_microseconds(pg._rounded_us(epoch_us(x), n) - epoch_us(x))),
    (x INTERVAL, n) AS pg._cut_interval(x, n >> 16, n & 65535);

-- A time zone's name; TRY cannot catch DuckDB's own error for an unknown one.
CREATE OR REPLACE MACRO pg.zone(z VARCHAR) AS
    if(z = '' OR contains(z, ' ') OR (z IS NOT NULL AND TRY_CAST('2000-01-01 00:00:00 ' || z AS TIMESTAMPTZ) IS NULL),
       pg.raise('22023', 'time zone "' || z || '" not recognized')::VARCHAR, z);

-- An interval as a zone is the distance from UTC.
CREATE OR REPLACE MACRO pg._distance(z) AS
    if(datepart('year', z) <> 0 OR datepart('month', z) <> 0 OR datepart('day', z) <> 0,
       pg.raise('22023', 'interval time zone "' || pg.to_text(z) || '" must not include months or days')::INTERVAL, z);
CREATE OR REPLACE MACRO pg.at_zone
    (x TIMESTAMPTZ, z INTERVAL) AS (x AT TIME ZONE 'UTC') + pg._distance(z),
    (x TIMESTAMP, z INTERVAL) AS (x - pg._distance(z)) AT TIME ZONE 'UTC',
    (x DATE, z INTERVAL) AS (x::TIMESTAMPTZ AT TIME ZONE 'UTC') + pg._distance(z),
    (x, z) AS x AT TIME ZONE pg.zone(z);

-- to_char by any pattern; those of constant patterns that are simple are made of DuckDB's functions.
CREATE OR REPLACE MACRO pg.chars(x, p) AS
    CAST(pg._told(sparkwave_chars(x::VARCHAR, p, typeof(x), current_setting('TimeZone'))) AS VARCHAR);
CREATE OR REPLACE MACRO pg.moment_of(s, p) AS
    CAST(sparkwave_by_pattern(s, p, 'timestamp with time zone') AS TIMESTAMPTZ);
CREATE OR REPLACE MACRO pg.date_of(s, p) AS CAST(sparkwave_by_pattern(s, p, 'date') AS DATE);
CREATE OR REPLACE MACRO pg.number_of(s, p) AS CAST(sparkwave_number(s, p) AS DECIMAL(38,10));
-- Conversions between times of day and intervals.
CREATE OR REPLACE MACRO pg.interval_of_time(x) AS to_microseconds(epoch_us(x));
CREATE OR REPLACE MACRO pg.time_of_interval(x) AS
    TIME '00:00:00' + to_microseconds(pg._micros(x) % 86400000000 + if(pg._micros(x) % 86400000000 < 0, 86400000000, 0));

-- Dates and times. Weeks are ISO weeks; parts are numeric.
-- There is no year 0.
CREATE OR REPLACE MACRO pg._year(y) AS if(y > 0, y, y - 1);
CREATE OR REPLACE MACRO pg._decade(y) AS if(y >= 0, y // 10, -((9 - y) // 10));
CREATE OR REPLACE MACRO pg._seconds(x) AS (epoch_us(x)::DECIMAL(38,4) * 0.000001)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_second(x) AS (microsecond(x)::DECIMAL(38,4) * 0.000001)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_milliseconds(x) AS (microsecond(x)::DECIMAL(38,7) * 0.001)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_microseconds(x) AS microsecond(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_minute(x) AS minute(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_hour(x) AS hour(x)::DECIMAL(38,10);
-- One function for each part, since DuckDB resolves the unit of `datepart` again for each row. `others` is the value
-- for parts that no time of day has.
CREATE OR REPLACE MACRO pg._clock_part(u, x, others) AS
    CASE u
        WHEN 'epoch' THEN pg._seconds(x)
        WHEN 'second' THEN pg.part_second(x)
        WHEN 'milliseconds' THEN pg.part_milliseconds(x)
        WHEN 'microseconds' THEN pg.part_microseconds(x)
        WHEN 'minute' THEN pg.part_minute(x)
        WHEN 'hour' THEN pg.part_hour(x)
        ELSE others END;
CREATE OR REPLACE MACRO pg._day_part(u, x) AS
    CASE u
        WHEN 'day' THEN day(x)::DECIMAL(38,10)
        WHEN 'dow' THEN dayofweek(x)::DECIMAL(38,10)
        WHEN 'isodow' THEN isodow(x)::DECIMAL(38,10)
        WHEN 'doy' THEN dayofyear(x)::DECIMAL(38,10)
        WHEN 'week' THEN week(x)::DECIMAL(38,10)
        WHEN 'month' THEN month(x)::DECIMAL(38,10)
        WHEN 'quarter' THEN quarter(x)::DECIMAL(38,10)
        WHEN 'julian' THEN julian(x::TIMESTAMP)::DECIMAL(38,10)
        WHEN 'decade' THEN pg._decade(year(x))::DECIMAL(38,10)
        WHEN 'year' THEN pg._year(year(x))::DECIMAL(38,10)
        WHEN 'isoyear' THEN pg._year(isoyear(x))::DECIMAL(38,10)
        ELSE datepart(u, x)::DECIMAL(38,10) END;
CREATE OR REPLACE MACRO pg._part(u, x) AS pg._clock_part(u, x, pg._day_part(u, x));
-- For a timestamp with time zone, the local date counts; DuckDB counts years before Christ differently.
CREATE OR REPLACE MACRO pg._zoned_part(u, x) AS
    if(u IN ('epoch', 'timezone', 'timezone_hour', 'timezone_minute'), pg._part(u, x), pg._part(u, x::TIMESTAMP));
-- Infinite dates have an infinite year, and no month.
CREATE OR REPLACE MACRO pg._grows(u) AS
    u IN ('epoch', 'julian', 'year', 'isoyear', 'decade', 'century', 'millennium');
CREATE OR REPLACE MACRO pg._endless(x, part) AS
    if(isinf(x), if(x > DATE '2000-01-01', 'Infinity', '-Infinity')::DOUBLE, part::DOUBLE);
CREATE OR REPLACE MACRO pg._date_part(u, x, part) AS if(pg._grows(u), pg._endless(x, part), part::DOUBLE);
-- The units of spans by PostgreSQL's words for them, of which ten letters count.
CREATE OR REPLACE MACRO pg._span(u) AS (MAP {
    'us': 'microseconds', 'usec': 'microseconds', 'usecs': 'microseconds', 'useconds': 'microseconds',
    'microsecon': 'microseconds', 'ms': 'milliseconds', 'msec': 'milliseconds', 'msecs': 'milliseconds',
    'mseconds': 'milliseconds', 'millisecon': 'milliseconds', 's': 'second', 'sec': 'second', 'secs': 'second',
    'second': 'second', 'seconds': 'second', 'm': 'minute', 'min': 'minute', 'mins': 'minute', 'minute': 'minute',
    'minutes': 'minute', 'h': 'hour', 'hr': 'hour', 'hrs': 'hour', 'hour': 'hour', 'hours': 'hour', 'd': 'day',
    'day': 'day', 'days': 'day', 'w': 'week', 'week': 'week', 'weeks': 'week', 'mon': 'month', 'mons': 'month',
    'month': 'month', 'months': 'month', 'qtr': 'quarter', 'quarter': 'quarter', 'y': 'year', 'yr': 'year',
    'yrs': 'year', 'year': 'year', 'years': 'year', 'dec': 'decade', 'decs': 'decade', 'decade': 'decade',
    'decades': 'decade', 'c': 'century', 'cent': 'century', 'century': 'century', 'centuries': 'century',
    'mil': 'millennium', 'mils': 'millennium', 'millennia': 'millennium', 'millennium': 'millennium',
    'timezone': 'timezone', 'timezone_h': 'timezone_hour', 'timezone_m': 'timezone_minute'})[left(lower(u), 10)];
CREATE OR REPLACE MACRO pg._is_part(u) AS lower(u) IN ('epoch', 'dow', 'isodow', 'doy', 'isoyear', 'julian');
CREATE OR REPLACE MACRO pg._no_unit(u, type) AS
    pg.raise('22023', 'unit "' || lower(u) || '" not recognized for type ' || type)::VARCHAR;
CREATE OR REPLACE MACRO pg._no_span(u, type) AS pg.raise_with('0A000', 'unit "' || lower(u) || '" not supported for type '
    || type, if(starts_with(lower(u), 'w'), 'Months usually have fractional weeks.', ''), '')::VARCHAR;
CREATE OR REPLACE MACRO pg._part_unit(u, type) AS
    if(pg._is_part(u), lower(u), coalesce(pg._span(u), pg._no_unit(u, type)));
CREATE OR REPLACE MACRO pg._span_unit(u, type) AS CASE
    WHEN starts_with(pg._span(u), 'timezone') OR pg._span(u) = 'week' AND type = 'interval' THEN pg._no_span(u, type)
    ELSE coalesce(pg._span(u), pg._no_unit(u, type)) END;
CREATE OR REPLACE MACRO pg._interval_part(u, x) AS
    CASE u WHEN 'epoch' THEN datepart('year', x) * 31557600::DECIMAL(38,10) + datepart('month', x) * 2592000
                             + datepart('day', x) * 86400 + pg._micros(x)::DECIMAL(38,4) * 0.000001
           WHEN 'year' THEN datepart('year', x)::DECIMAL(38,10)
           WHEN 'decade' THEN datepart('decade', x)::DECIMAL(38,10)
        ELSE pg._part(u, x) END;
-- TRY cannot catch DuckDB's error for a unit that a type lacks, so DuckDB never gets such a unit.
CREATE OR REPLACE MACRO pg._no_part(u, type) AS
    pg.raise('0A000', 'unit "' || u || '" not supported for type ' || type)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg._time_part(u, x) AS pg._clock_part(u, x, pg._no_part(u, 'time without time zone'));
CREATE OR REPLACE MACRO pg._is_of_dates(u) AS
    u IN ('week', 'dow', 'isodow', 'doy', 'isoyear', 'julian', 'timezone', 'timezone_hour', 'timezone_minute');
CREATE OR REPLACE MACRO pg._part_of_interval(u, x) AS
    if(pg._is_of_dates(u), pg._no_part(u, 'interval'),
       pg._interval_part(if(pg._is_of_dates(u), 'day', u), x));
-- For any unit, which is parsed once. Known units have their own functions.
CREATE OR REPLACE MACRO pg.extract
    (u, x TIME) AS list_transform([pg._part_unit(u, 'time without time zone')], lambda _u: pg._time_part(_u, x))[1],
    (u, x INTERVAL) AS list_transform([pg._part_unit(u, 'interval')], lambda _u: pg._part_of_interval(_u, x))[1],
    (u, x TIMESTAMPTZ) AS list_transform([pg._part_unit(u, 'timestamp with time zone')], lambda _u: pg._zoned_part(_u, x))[1],
    (u, x TIMESTAMP) AS list_transform([pg._part_unit(u, 'timestamp without time zone')], lambda _u: pg._part(_u, x))[1],
    (u, x) AS list_transform([pg._part_unit(u, 'date')], lambda _u: pg._part(_u, x))[1];
CREATE OR REPLACE MACRO pg.date_part
    (u, x TIME) AS list_transform([pg._part_unit(u, 'time without time zone')], lambda _u: pg._time_part(_u, x))[1]::DOUBLE,
    (u, x INTERVAL) AS list_transform([pg._part_unit(u, 'interval')], lambda _u: pg._part_of_interval(_u, x))[1]::DOUBLE,
    (u, x TIMESTAMPTZ) AS
        list_transform([pg._part_unit(u, 'timestamp with time zone')], lambda _u: pg._date_part(_u, x, pg._zoned_part(_u, x)))[1],
    (u, x TIMESTAMP) AS list_transform([pg._part_unit(u, 'timestamp without time zone')], lambda _u: pg._date_part(_u, x, pg._part(_u, x)))[1],
    (u, x) AS list_transform([pg._part_unit(u, 'timestamp without time zone')], lambda _u: pg._date_part(_u, x, pg._part(_u, x)))[1];
-- One function for each unit (planner/functions/units.py), also for the units above. All parts except seconds since
-- 1970 are those of `local` times: for a timestamp with time zone, of its date and clock there.
CREATE OR REPLACE MACRO pg.local(x TIMESTAMPTZ) AS x::TIMESTAMP, (x TIMESTAMP) AS x, (x DATE) AS x, (x) AS x;
CREATE OR REPLACE MACRO pg.part_epoch(x INTERVAL) AS pg._interval_part('epoch', x), (x) AS pg._seconds(x);
CREATE OR REPLACE MACRO pg.part_day
    (x TIME) AS pg._no_part('day', 'time without time zone'), (x) AS day(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_month
    (x TIME) AS pg._no_part('month', 'time without time zone'), (x) AS month(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_quarter
    (x TIME) AS pg._no_part('quarter', 'time without time zone'), (x) AS quarter(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_dow
    (x TIME) AS pg._no_part('dow', 'time without time zone'), (x INTERVAL) AS pg._no_part('dow', 'interval'),
    (x) AS dayofweek(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_isodow
    (x TIME) AS pg._no_part('isodow', 'time without time zone'), (x INTERVAL) AS pg._no_part('isodow', 'interval'),
    (x) AS isodow(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_doy
    (x TIME) AS pg._no_part('doy', 'time without time zone'), (x INTERVAL) AS pg._no_part('doy', 'interval'),
    (x) AS dayofyear(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_week
    (x TIME) AS pg._no_part('week', 'time without time zone'), (x INTERVAL) AS pg._no_part('week', 'interval'),
    (x) AS week(x)::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.part_year
    (x TIME) AS pg._no_part('year', 'time without time zone'), (x INTERVAL) AS datepart('year', x)::DECIMAL(38,10),
    (x) AS pg._year(year(x))::DECIMAL(38,10);
CREATE OR REPLACE MACRO pg.date_part_epoch
    (x TIME) AS epoch(x), (x INTERVAL) AS pg._interval_part('epoch', x)::DOUBLE, (x) AS pg._endless(x, pg._seconds(x));
CREATE OR REPLACE MACRO pg.date_part_year
    (x TIME) AS pg._no_part('year', 'time without time zone')::DOUBLE, (x INTERVAL) AS datepart('year', x)::DOUBLE,
    (x) AS pg._endless(x, pg._year(year(x)));
CREATE OR REPLACE MACRO pg.trunc_to(u, x DATE) AS date_trunc(u, x::TIMESTAMP),
    (u, x TIME) AS date_trunc(pg._span_unit(u, 'interval'), pg.interval_of_time(x)),
    (u, x INTERVAL) AS date_trunc(pg._span_unit(u, 'interval'), x), (u, x) AS date_trunc(u, x);
-- The first year of a span of n years, if the first span began in year `one`; DuckDB's spans begin in year 0.
CREATE OR REPLACE MACRO pg._first_year(y, n, one) AS
    if(y >= one, (y - one) // n * n, -((n - 1 + one - y) // n * n)) + one;
CREATE OR REPLACE MACRO pg._new_year(y) AS
    make_timestamp(if(y < -4712, pg.raise('22008', 'timestamp out of range')::BIGINT, y), 1, 1, 0, 0, 0);
CREATE OR REPLACE MACRO pg._long_trunc(u, x) AS
    pg._new_year(pg._first_year(datepart('year', x), CASE u WHEN 'decade' THEN 10 WHEN 'century' THEN 100 ELSE 1000 END,
                                if(u = 'decade', 0, 1)));
CREATE OR REPLACE MACRO pg.isfinite(x) AS x::VARCHAR NOT IN ('infinity', '-infinity');
CREATE OR REPLACE MACRO pg._is_long(u, x) AS u IN ('decade', 'century', 'millennium') AND isfinite(x);
CREATE OR REPLACE MACRO pg._trunc(u, x) AS if(pg._is_long(u, x), pg._long_trunc(u, x), date_trunc(u, x));
CREATE OR REPLACE MACRO pg._zoned_trunc(u, x) AS
    if(pg._is_long(u, x), pg._long_trunc(u, x::TIMESTAMP)::TIMESTAMPTZ, date_trunc(u, x));
CREATE OR REPLACE MACRO pg.date_trunc
    (u, x DATE) AS
        list_transform([pg._span_unit(u, 'timestamp without time zone')], lambda _u: pg._trunc(_u, x::TIMESTAMP))[1],
    (u, x TIMESTAMP) AS
        list_transform([pg._span_unit(u, 'timestamp without time zone')], lambda _u: pg._trunc(_u, x))[1],
    (u, x TIMESTAMPTZ) AS
        list_transform([pg._span_unit(u, 'timestamp with time zone')], lambda _u: pg._zoned_trunc(_u, x))[1],
    (u, x INTERVAL) AS date_trunc(pg._span_unit(u, 'interval'), x),
    (u, x TIME) AS date_trunc(pg._span_unit(u, 'interval'), pg.interval_of_time(x)),
    (u, x TIMESTAMPTZ, z) AS list_transform([{u: pg._span_unit(u, 'timestamp with time zone'), z: pg.zone(z)}], lambda _u:
        CASE WHEN _u['u'] IN ('hour', 'minute', 'second', 'milliseconds', 'microseconds')
             THEN x - ((x AT TIME ZONE _u['z']) - date_trunc(_u['u'], x AT TIME ZONE _u['z']))
             ELSE pg._trunc(_u['u'], x AT TIME ZONE _u['z']) AT TIME ZONE _u['z'] END)[1];
CREATE OR REPLACE MACRO pg._stride(stride) AS to_microseconds(
    CASE WHEN datepart('year', (stride)::INTERVAL) <> 0 OR datepart('month', (stride)::INTERVAL) <> 0
         THEN pg.raise('0A000', 'timestamps cannot be binned into intervals containing months or years')
         WHEN epoch_us((stride)::INTERVAL) <= 0 THEN pg.raise('22008', 'stride must be greater than zero')
         ELSE epoch_us((stride)::INTERVAL) END);
CREATE OR REPLACE MACRO pg.date_bin(stride, x, origin) AS time_bucket(pg._stride(stride), x, origin);
CREATE OR REPLACE MACRO pg.age(x) AS age(current_date::TIMESTAMP, x::TIMESTAMP), (x, y) AS age(x::TIMESTAMP, y::TIMESTAMP);
CREATE OR REPLACE MACRO pg._months(x) AS datepart('year', x) * 12 + datepart('month', x);
-- Months and days count in local time, of which an ambiguous one is the later one.
CREATE OR REPLACE MACRO pg.add_interval(x, i) AS
    CASE WHEN NOT isfinite(x) OR (pg._months(i) = 0 AND datepart('day', i) = 0) THEN x + i
         ELSE (x::TIMESTAMP + to_months(pg._months(i)::INTEGER) + to_days(datepart('day', i)::INTEGER))::TIMESTAMPTZ
              + to_microseconds(pg._micros(i)) END;
-- What is between two moments; days are 24 hours, whatever the session's time zone.
CREATE OR REPLACE MACRO pg.between_moments(x, y) AS
    if(isfinite(x) AND isfinite(y), make_timestamp(epoch_us(x)) - make_timestamp(epoch_us(y)), x::TIMESTAMP - y::TIMESTAMP);
-- The text of an interval in the form that DuckDB reads. PostgreSQL's own form, and a number with a unit, stay.
CREATE OR REPLACE MACRO pg.interval_in
    (s VARCHAR, type) AS if(regexp_full_match(s,
            '-?\d{1,7} (year|mon|month|week|day|hour|minute|second)s?|(-?\d{1,7} years?)?(^| )?(-?\d{1,7} mons?)?(^| )?'
            || '(-?\d{1,7} days?)?(^| )?(-?\d{2,7}:[0-5]\d:[0-5]\d(\.\d{1,6})?)?') AND s <> '', s,
        sparkwave_moment_text(s, type, NULL) || ''),
    (s, type) AS s;
CREATE OR REPLACE MACRO pg._read_interval(s) AS pg.interval_in(s, 'interval')::INTERVAL;
-- An interval, a time or a number plus a string literal. A literal added to a date would be ambiguous.
CREATE OR REPLACE MACRO pg.add_literal
    (x INTERVAL, y) AS x + pg._read_interval(y), (x TIMESTAMP, y) AS x + pg._read_interval(y),
    (x TIMESTAMPTZ, y) AS pg.add_interval(x, pg._read_interval(y)), (x TIME, y) AS x + pg._read_interval(y),
    (x DATE, y) AS x + y, (x SMALLINT, y) AS x + y::SMALLINT, (x INTEGER, y) AS x + y::INTEGER,
    (x BIGINT, y) AS x + y::BIGINT, (x FLOAT, y) AS x + y::FLOAT, (x DOUBLE, y) AS x + y::DOUBLE,
    (x DECIMAL(38,10), y) AS x + y::DECIMAL(38,10), (x, y) AS x + y;
CREATE OR REPLACE MACRO pg.subtract_literal
    (x INTERVAL, y) AS x - pg._read_interval(y), (x TIMESTAMP, y) AS x - y::TIMESTAMP, (x TIMESTAMPTZ, y) AS pg.between_moments(x, y::TIMESTAMPTZ),
    (x DATE, y) AS pg._days_between(x, y::DATE), (x SMALLINT, y) AS x - y::SMALLINT,
    (x INTEGER, y) AS x - y::INTEGER, (x BIGINT, y) AS x - y::BIGINT, (x FLOAT, y) AS x - y::FLOAT,
    (x DOUBLE, y) AS x - y::DOUBLE, (x DECIMAL(38,10), y) AS x - y::DECIMAL(38,10), (x, y) AS x - y;
-- The text of a date or timestamp, or of a time, in the form that DuckDB reads. What is plainly ISO stays. The usual
-- other forms are changed here, because they may be many and Python takes longer, on one core: days such as 1/2/2003 in
-- the order of DateStyle, which is MDY in views, and Jan 2, 2003 or 2-Jan-2003. `md` are the months and days that exist.
CREATE OR REPLACE MACRO pg._is_dated(s, md) AS regexp_full_match(s, '(?i)(' || md || ')(,? [1-9]\d{3}|[/-][1-9]\d{3})'
    || '( ([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?| (0?[1-9]|1[0-2]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)? ?[ap]m)?');
CREATE OR REPLACE MACRO pg._is_slashed(s, md) AS
    regexp_matches(s, '^\d+/\d+/\d{4}( |$)') AND pg._is_dated(s, md);
CREATE OR REPLACE MACRO pg._is_month_first(s) AS regexp_matches(s, '^[A-Za-z]{3,} \d+,? \d{4}( |$)') AND pg._is_dated(s,
    '(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sep(t|tember)?|oct(ober)?|nov(ember)?'
    || '|dec(ember)?) (0?[1-9]|1\d|2[0-8])|(jan(uary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sep(t|tember)?'
    || '|oct(ober)?|nov(ember)?|dec(ember)?) (29|30)|(jan(uary)?|mar(ch)?|may|july?|aug(ust)?|oct(ober)?'
    || '|dec(ember)?) 31');
CREATE OR REPLACE MACRO pg._is_month_between(s) AS regexp_matches(s, '^\d+-[A-Za-z]{3}-\d{4}( |$)') AND pg._is_dated(s,
    '(0?[1-9]|1\d|2[0-8])-(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)'
    || '|(29|30)-(jan|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|31-(jan|mar|may|jul|aug|oct|dec)');
CREATE OR REPLACE MACRO pg._month(name) AS (strpos('janfebmaraprmayjunjulaugsepoctnovdec', lower(name)) + 2) // 3;
CREATE OR REPLACE MACRO pg._named_day(s, name) AS
    regexp_extract(s, '\d{4}') || '-' || pg._month(name) || '-' || regexp_extract(s, '\d+');
-- The clock behind a day, of 24 hours.
CREATE OR REPLACE MACRO pg._day_clock(s) AS CASE WHEN s ILIKE '%m'
    THEN ' ' || lpad((regexp_extract(s, ' (\d+):', 1)::INTEGER % 12 + if(s ILIKE '%pm', 12, 0))::VARCHAR, 2, '0')
        || regexp_extract(s, ':[\d:.]+')
    WHEN contains(s, ':') THEN ' ' || regexp_extract(s, '\d+:.*$') ELSE '' END;
CREATE OR REPLACE MACRO pg.date_in
    (s VARCHAR, type) AS CASE
        WHEN regexp_full_match(s, '[1-9]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])'
            || '([ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?(Z|[+-](0\d|1[0-5])(:[0-5]\d)?)?)?)?') THEN s
        WHEN coalesce(getvariable('date_order')::VARCHAR, 'MDY') = 'MDY' AND pg._is_slashed(s,
            '(0?[1-9]|1[0-2])/(0?[1-9]|1\d|2[0-8])|(0?[13-9]|1[0-2])/(29|30)|(0?[13578]|1[02])/31')
            THEN regexp_replace(s, '^(\d+)/(\d+)/(\d+).*$', '\3-\1-\2') || pg._day_clock(s)
        WHEN getvariable('date_order')::VARCHAR = 'DMY' AND pg._is_slashed(s,
            '(0?[1-9]|1\d|2[0-8])/(0?[1-9]|1[0-2])|(29|30)/(0?[13-9]|1[0-2])|31/(0?[13578]|1[02])')
            THEN regexp_replace(s, '^(\d+)/(\d+)/(\d+).*$', '\3-\2-\1') || pg._day_clock(s)
        WHEN coalesce(getvariable('date_order')::VARCHAR, 'MDY') <> 'YMD' AND pg._is_month_first(s)
            THEN pg._named_day(s, left(s, 3)) || pg._day_clock(s)
        WHEN coalesce(getvariable('date_order')::VARCHAR, 'MDY') <> 'YMD' AND pg._is_month_between(s)
            THEN pg._named_day(s, regexp_extract(s, '[A-Za-z]+')) || pg._day_clock(s)
        ELSE sparkwave_moment_text(s, type, getvariable('date_order')::VARCHAR) || '' END,
    (s, type) AS s;
CREATE OR REPLACE MACRO pg.time_in
    (s VARCHAR, type) AS if(regexp_full_match(s, '([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?'), s,
        sparkwave_moment_text(s, type, NULL) || ''),
    (s TIMESTAMPTZ, type) AS s::TIMESTAMP,
    (s, type) AS s;
-- The range of PostgreSQL's types; NULL for values outside.
CREATE OR REPLACE MACRO pg.time_in_range
    (x DATE) AS CASE WHEN x BETWEEN DATE '4714-11-24 (BC)' AND DATE '5874897-12-31' OR isinf(x) THEN x END,
    (x) AS CASE WHEN x >= TIMESTAMP '4714-11-24 (BC) 00:00:00' OR isinf(x) THEN x END;
-- Negative years are before Christ.
CREATE OR REPLACE MACRO pg._two(n) AS if(n < 10, lpad(n::VARCHAR, 2, '0'), n::VARCHAR);
CREATE OR REPLACE MACRO pg._made_year(y, what) AS
    if(y = 0, pg.raise('22008', 'date field value out of range: ' || what), if(y < 0, y + 1, y));
CREATE OR REPLACE MACRO pg.make_date(y, m, d) AS
    make_date(pg._made_year(y, y || '-' || pg._two(m) || '-' || pg._two(d))::BIGINT, m, d);
CREATE OR REPLACE MACRO pg.make_time(h, m, s) AS make_time(h, m, s);
CREATE OR REPLACE MACRO pg.make_timestamp(y, mo, d, h, mi, s) AS
    make_timestamp(pg._made_year(y, y || '-' || pg._two(mo) || '-' || pg._two(d))::BIGINT, mo, d, h, mi, s);
-- An interval of months, days and microseconds; all of them that are not zero have one sign.
CREATE OR REPLACE MACRO pg._interval(m, d, us) AS
    to_months((m)::INTEGER) + to_days((d)::INTEGER) + to_microseconds(us);
CREATE OR REPLACE MACRO pg.make_interval(years, months, weeks, days, hours, mins, secs) AS
    pg._interval(years::BIGINT * 12 + months, weeks::BIGINT * 7 + days,
                 hours::BIGINT * 3600000000 + mins::BIGINT * 60000000 + round(secs::DOUBLE * 1000000)::BIGINT);
-- Whether two periods overlap; the ends of each are in any order, and one end may be NULL.
CREATE OR REPLACE MACRO pg._last(a, b) AS if(a IS NULL OR b IS NULL, NULL, greatest(a, b));
CREATE OR REPLACE MACRO pg._reaches(start, end_, other_end) AS
    CASE WHEN start < end_ THEN true WHEN end_ IS NOT NULL AND other_end IS NOT NULL THEN false END;
CREATE OR REPLACE MACRO pg._overlap(low, high, other, other_high) AS
    CASE WHEN low > other THEN pg._reaches(low, other_high, high)
         WHEN low < other THEN pg._reaches(other, high, other_high)
         WHEN low = other AND high IS NOT NULL AND other_high IS NOT NULL THEN true END;
CREATE OR REPLACE MACRO pg.overlaps(a, b, c, d) AS
    pg._overlap(least(a, b), pg._last(a, b), least(c, d), pg._last(c, d));
CREATE OR REPLACE MACRO pg._carry(high, low) AS CASE WHEN high > 0 AND low < 0 THEN 1 WHEN high < 0 AND low > 0 THEN -1 ELSE 0 END;
CREATE OR REPLACE MACRO pg._with_days(m, d, us) AS
    pg._interval(m, (d) - pg._carry(d, us), (us) + pg._carry(d, us) * 86400000000);
-- The sort key of an interval: microseconds, with months of 30 days and days of 24 hours.
CREATE OR REPLACE MACRO pg.interval_key(x) AS
    (pg._months(x)::HUGEINT * 30 + datepart('day', x)) * 86400000000 + pg._micros(x);
CREATE OR REPLACE MACRO pg._by_length(a) AS
    list_sort(list_transform(list_filter(a, lambda x: x IS NOT NULL), lambda _x: {'k': pg.interval_key(_x), 'x': _x}));
CREATE OR REPLACE MACRO pg.greatest_interval(a) AS pg._by_length(a)[-1].x;
CREATE OR REPLACE MACRO pg.least_interval(a) AS pg._by_length(a)[1].x;
CREATE OR REPLACE MACRO pg.justify_hours(x) AS
    pg._with_days(pg._months(x), datepart('day', x) + pg._micros(x) // 86400000000, pg._micros(x) % 86400000000);
CREATE OR REPLACE MACRO pg.justify_days(x) AS
    pg._interval(pg._months(x) + datepart('day', x) // 30
                     - pg._carry(pg._months(x) + datepart('day', x) // 30, datepart('day', x) % 30),
                 datepart('day', x) % 30
                     + 30 * pg._carry(pg._months(x) + datepart('day', x) // 30, datepart('day', x) % 30),
                 pg._micros(x));
CREATE OR REPLACE MACRO pg._all_days(x) AS datepart('day', x) + pg._micros(x) // 86400000000;
CREATE OR REPLACE MACRO pg.justify_interval(x) AS list_transform([pg.interval_key(x)], lambda _k: pg._interval(
    _k // 2592000000000, (_k % 2592000000000 // 86400000000)::INTEGER, (_k % 86400000000)::BIGINT))[1];
CREATE OR REPLACE MACRO pg.to_timestamp(x) AS CASE
    WHEN isinf(x::DOUBLE) THEN if(x::DOUBLE > 0, 'infinity', '-infinity')::TIMESTAMPTZ ELSE to_timestamp(x::DOUBLE) END;

-- jsonb.
CREATE OR REPLACE MACRO pg.jsonb_typeof(j) AS
    CASE json_type(j) WHEN 'OBJECT' THEN 'object' WHEN 'ARRAY' THEN 'array' WHEN 'VARCHAR' THEN 'string'
        WHEN 'BOOLEAN' THEN 'boolean' WHEN 'NULL' THEN 'null' WHEN NULL THEN NULL ELSE if(j IS NULL, NULL, 'number') END;
-- A document whose equals have the same text: an object's keys are sorted and there once each, 1.0 is 1. A text without
-- a comma before a string has no two keys, and one without a point or an exponent no number that is written otherwise.
-- An array's documents may have spaces.
CREATE OR REPLACE MACRO pg.jsonb_canonical(j) AS if(regexp_matches(j::VARCHAR, '[,:]\s|,"|\d[.eE]'),
    sparkwave_canonical_document(j::VARCHAR) || '', j::VARCHAR)::JSON;
-- A text in the order of documents: the empty array, null, strings, numbers, booleans, arrays, objects; longer arrays
-- and objects come later. Arrays and objects of one length have the order of their texts. The bits of a number have its
-- order when those of negative numbers are the other way round.
CREATE OR REPLACE MACRO pg._number_key(x) AS
    if(x < 0, translate(x::BIT::VARCHAR, '01', '10'), '1' || (x::BIT::VARCHAR)[2:]);
CREATE OR REPLACE MACRO pg.jsonb_key(j) AS CASE json_type(j)
    WHEN 'NULL' THEN '0null'
    WHEN 'VARCHAR' THEN '1' || json_extract_string(j, '$')
    WHEN 'BOOLEAN' THEN '3' || j::VARCHAR
    WHEN 'ARRAY' THEN if(json_array_length(j) = 0, '0',
        '4' || printf('%010d', json_array_length(j)) || pg.jsonb_canonical(j)::VARCHAR)
    WHEN 'OBJECT' THEN '5' || printf('%010d', len(list_distinct(json_keys(j)))) || pg.jsonb_canonical(j)::VARCHAR
    ELSE '2' || pg._number_key(coalesce(TRY_CAST(j::VARCHAR AS DOUBLE),
            if(starts_with(j::VARCHAR, '-'), '-Infinity', 'Infinity')::DOUBLE) + 0)
        || pg.jsonb_canonical(j)::VARCHAR END;
CREATE OR REPLACE MACRO pg.jsonb_keys_of_each(a) AS list_transform(a, lambda _document: pg.jsonb_key(_document));
-- The text of a document as clients get it.
CREATE OR REPLACE MACRO pg.sorted_text(j) AS pg.jsonb_text(j);
CREATE OR REPLACE MACRO pg.shown_text(x) AS pg.to_text(x);
CREATE OR REPLACE MACRO pg.jsonb_array_length(j) AS CASE
    WHEN json_type(j) = 'ARRAY' THEN json_array_length(j)::INTEGER
    WHEN json_type(j) = 'OBJECT' THEN pg.raise('22023', 'cannot get array length of a non-array')
    WHEN j IS NOT NULL THEN pg.raise('22023', 'cannot get array length of a scalar') END;
CREATE OR REPLACE MACRO pg._pointer(path) AS
    array_to_string(list_transform(path, lambda k: '/' || replace(replace(k::VARCHAR, '~', '~0'), '/', '~1')), '');
-- Numbers and times in jsonb: numbers that JSON lacks become strings.
CREATE OR REPLACE MACRO pg.number_in_json(x) AS
    list_transform([pg.to_text(x)], lambda _t: if(_t IN ('NaN', 'Infinity', '-Infinity'), to_json(_t), _t::JSON))[1];
CREATE OR REPLACE MACRO pg.time_in_json(x) AS
    regexp_replace(replace(pg.to_text(x), ' ', 'T'), '([+-][0-9]{2})(TBC)?$', '\1:00\2').replace('TBC', ' BC');
-- A date in to_char's form YYYY-MM-DD. From year 1 on it equals the date's text, which takes half as long.
CREATE OR REPLACE MACRO pg.day_as_text(x) AS
    if(x::DATE >= DATE '0001-01-01', x::DATE::VARCHAR, strftime(x, '%Y-%m-%d'));
-- The number in a text: its digits before and after the point, up to `whole` and `fraction`, and a sign on either side.
CREATE OR REPLACE MACRO pg._read(s, whole, fraction) AS
    if(regexp_matches(s, '^[-<]|-$'), '-', '') || substr(regexp_extract(s, '^[-+<]?([0-9]*)', 1), 1, whole)
    || substr(regexp_extract(s, '^[-+<]?[0-9]*([.][0-9]*)', 1), 1, fraction + 1);
CREATE OR REPLACE MACRO pg.to_number(s, skipped, whole, fraction) AS
    pg._read(translate(s, ' ' || skipped, ''), whole, fraction)::DECIMAL(38,10);
-- A number with leading zeros up to a width, of which a sign takes one.
CREATE OR REPLACE MACRO pg._padded(n, width) AS if(n < 0, '-', '') || lpad(abs(n)::VARCHAR,
    greatest(width - if(n < 0, 1, 0), length(abs(n)::VARCHAR))::INTEGER, '0');
-- The ending of an ordinal number.
CREATE OR REPLACE MACRO pg._ordinal(n) AS CASE WHEN right(n, 2) IN ('11', '12', '13') THEN 'th'
    WHEN right(n, 1) = '1' THEN 'st' WHEN right(n, 1) = '2' THEN 'nd' WHEN right(n, 1) = '3' THEN 'rd' ELSE 'th' END;
CREATE OR REPLACE MACRO pg._roman_month(n) AS
    ['I', 'II', 'III', 'IV', 'V', 'VI', 'VII', 'VIII', 'IX', 'X', 'XI', 'XII'][n];
CREATE OR REPLACE MACRO pg._is_place(k) AS typeof(k) IN ('SMALLINT', 'INTEGER', 'BIGINT');
-- A field by its name, or an item by its number: a scalar counts as an array of itself.
CREATE OR REPLACE MACRO pg.json_get(j, k) AS CASE
    WHEN NOT pg._is_place(k)
    THEN CASE WHEN json_type(j) = 'OBJECT' THEN json_extract(j, pg._pointer([k])) END
    WHEN json_type(j) = 'ARRAY' THEN json_extract(j, TRY_CAST(k AS BIGINT))
    WHEN json_type(j) <> 'OBJECT' AND TRY_CAST(k AS BIGINT) IN (0, -1) THEN j END;
-- The result of `->>` as text. A document without nested ones cannot return one; the faster variant suffices for it.
CREATE OR REPLACE MACRO pg._unquoted(j) AS
    if(json_type(j) IN ('OBJECT', 'ARRAY'), pg.jsonb_text(j), json_extract_string(j, '$'));
CREATE OR REPLACE MACRO pg.json_text(j, path) AS
    if(regexp_matches(j::VARCHAR, '(?s).[{\[]'), pg._unquoted(json_extract(j, path)), json_extract_string(j, path));
-- Of json a scalar is no array.
CREATE OR REPLACE MACRO pg.json_of_parts(j) AS if(json_type(j) IN ('OBJECT', 'ARRAY'), j, NULL);
CREATE OR REPLACE MACRO pg.json_get_text(j, k) AS pg._unquoted(pg.json_get(j, k));
-- Text to jsonb, without spaces, so that equal documents are equal texts. DuckDB accepts NaN and infinities as numbers,
-- and commas behind the last part.
CREATE OR REPLACE MACRO pg._is_odd(s) AS regexp_matches(s, '(?i)nan|inf|,\s*[\]}]')
    AND regexp_matches(regexp_replace(s, '(?s)"(\\.|[^"\\])*"', '""', 'g'), '(?i)nan|inf|,\s*[\]}]');
CREATE OR REPLACE MACRO pg.jsonb_in(s) AS json(
    if(pg._is_odd(s::VARCHAR), pg.raise('22P02', 'invalid input syntax for type json')::VARCHAR, s::VARCHAR));
-- Text that is json as json. DuckDB's (1.5.5) cast of a NULL to a union is a union that is not NULL.
CREATE OR REPLACE MACRO pg.json_from_lake(s) AS CASE WHEN s IS NOT NULL THEN s::UNION("json" VARCHAR) END;
-- Text to json, which keeps it as it is written; from jsonb, its text; from any of the two, or json.
CREATE OR REPLACE MACRO pg.json_in(s) AS CASE
    WHEN json_valid(s) AND NOT pg._is_odd(s) THEN s::UNION("json" VARCHAR)
    WHEN s IS NOT NULL THEN pg.raise('22P02', 'invalid input syntax for type json')::VARCHAR::UNION("json" VARCHAR) END;
CREATE OR REPLACE MACRO pg.json_of_jsonb(j) AS pg.json_from_lake(pg.jsonb_text(j));
CREATE OR REPLACE MACRO pg.as_json(x) AS CASE
    WHEN typeof(x) = 'JSON' THEN pg.json_of_jsonb(x::VARCHAR)
    WHEN typeof(x) = 'UNION("json" VARCHAR)' THEN pg.json_from_lake(x::VARCHAR) ELSE pg.json_in(x::VARCHAR) END;
-- json as jsonb, to be read.
CREATE OR REPLACE MACRO pg.document(j) AS json(j::VARCHAR);
-- The text that a value of unknown type has in json.
CREATE OR REPLACE MACRO pg.text_in_json(x) AS CASE
    WHEN typeof(x) = 'UNION("json" VARCHAR)' THEN x::VARCHAR
    WHEN contains(typeof(x), 'UNION(') THEN pg.raise('0A000', 'a row with json is not supported here')::VARCHAR
    WHEN typeof(x) = 'JSON' THEN pg.jsonb_text(x) ELSE to_json(x)::VARCHAR END;
CREATE OR REPLACE MACRO pg.key_in_json(x, place) AS to_json(coalesce(pg.to_text(x),
    pg.raise('22023', 'argument ' || place || ' cannot be null')::VARCHAR))::VARCHAR;
CREATE OR REPLACE MACRO pg.json_of_items(_texts, separator) AS pg.json_from_lake(
    '[' || array_to_string(list_transform(_texts, lambda t: coalesce(t, 'null')), separator) || ']');
CREATE OR REPLACE MACRO pg.json_field(k, v) AS {'name': k, 'text': v};
CREATE OR REPLACE MACRO pg.json_of_fields(_fields) AS pg.json_from_lake('{ ' || array_to_string(list_transform(_fields, lambda _field:
        to_json(coalesce(_field['name'], pg.raise('22023', 'field name must not be null')::VARCHAR))::VARCHAR
        || ' : ' || coalesce(_field['text'], 'null')), ', ') || ' }');
-- Checks that a value to be cast is a number or a boolean.
CREATE OR REPLACE MACRO pg.jsonb_of_kind(j, kind, type) AS
    if(coalesce(pg.jsonb_typeof(j), kind) = kind, j,
       pg.raise('22023', 'cannot cast jsonb ' || replace(pg.jsonb_typeof(j), 'number', 'numeric') || ' to type ' || type)
           ::VARCHAR::JSON);
-- A number as an integer. Those with a fraction are doubles (`docs/limits.md`), of which DuckDB rounds halves to even ones.
CREATE OR REPLACE MACRO pg.jsonb_integer(j, type) AS CASE
    WHEN json_type(j) <> 'DOUBLE' OR j IS NULL THEN pg.jsonb_of_kind(j, 'number', type)::HUGEINT
    WHEN abs(j::DOUBLE) < 1e19 THEN round(j::DOUBLE)::HUGEINT
    ELSE pg.raise('22003', type || ' out of range')::HUGEINT END;
-- The part at a path. DuckDB's own paths have no numbers from the end, with a sign or with zeros before them.
CREATE OR REPLACE MACRO pg._part_of_document(j, k) AS CASE json_type(j)
    WHEN 'OBJECT' THEN json_extract(j, pg._pointer([k]))
    WHEN 'ARRAY' THEN if(regexp_full_match(k, '\s*[-+]?\d+'), json_extract(j, TRY_CAST(k AS BIGINT)), NULL) END;
CREATE OR REPLACE MACRO pg._part_by_part(j, path) AS list_reduce(
    list_prepend({'part': json_extract(j, '$'), 'key': ''}, list_transform(path, lambda _key: {'part': NULL::JSON, 'key': _key})),
    lambda _found, _next: {'part': pg._part_of_document(_found['part'], _next['key']), 'key': ''})['part'];
CREATE OR REPLACE MACRO pg.json_at(j, path) AS CASE
    WHEN len(path) = 0 THEN j
    WHEN list_count(path) < len(path) THEN NULL
    WHEN regexp_matches(array_to_string(path, chr(10)), '(^|\n)\s*([-+]\d|0\d|\s\d)') THEN pg._part_by_part(j, path)
    ELSE json_extract(j, pg._pointer(path)) END;
CREATE OR REPLACE MACRO pg.json_text_at(j, path) AS pg._unquoted(pg.json_at(j, path));
CREATE OR REPLACE MACRO pg.jsonb_contains(a, b) AS sparkwave_contains_document(a::VARCHAR, b::VARCHAR);
-- What a jsonpath finds, as an array.
CREATE OR REPLACE MACRO pg._unless_error(found) AS
    if(starts_with(found, '!'), pg.raise(substr(found, 2, 5), substr(found, 8))::VARCHAR, found);
CREATE OR REPLACE MACRO pg._at_path(j, p, v, s) AS list_transform(
    [sparkwave_document_path(j::VARCHAR, p, v::VARCHAR, s)], lambda r: pg._unless_error(r))[1];
CREATE OR REPLACE MACRO pg.jsonb_path_query_array
    (j, p) AS pg._at_path(j, p, '{}', false)::JSON,
    (j, p, v) AS pg._at_path(j, p, v, false)::JSON,
    (j, p, v, s) AS pg._at_path(j, p, v, s)::JSON;
CREATE OR REPLACE MACRO pg.jsonb_path_query_first
    (j, p) AS pg._at_path(j, p, '{}', false)::JSON -> 0,
    (j, p, v) AS pg._at_path(j, p, v, false)::JSON -> 0,
    (j, p, v, s) AS pg._at_path(j, p, v, s)::JSON -> 0;
CREATE OR REPLACE MACRO pg.jsonb_path_exists
    (j, p) AS pg._at_path(j, p, '{}', false) <> '[]',
    (j, p, v) AS pg._at_path(j, p, v, false) <> '[]',
    (j, p, v, s) AS list_transform([sparkwave_document_path(j::VARCHAR, p, v::VARCHAR, false)], lambda r:
        if(s AND starts_with(r, '!2203'), NULL, pg._unless_error(r)))[1] <> '[]';  -- an error of the path's values
CREATE OR REPLACE MACRO pg._path_truth(found, s) AS CASE found WHEN '[true]' THEN true WHEN '[false]' THEN false
    WHEN '[null]' THEN NULL
    ELSE if(found IS NULL OR s, NULL, pg.raise('22038', 'single boolean result is expected')::BOOLEAN) END;
CREATE OR REPLACE MACRO pg.jsonb_path_match
    (j, p) AS pg._path_truth(pg._at_path(j, p, '{}', false), false),
    (j, p, v) AS pg._path_truth(pg._at_path(j, p, v, false), false),
    (j, p, v, s) AS pg._path_truth(pg._at_path(j, p, v, s), s);
CREATE OR REPLACE MACRO pg.jsonb_exists(j, k) AS CASE WHEN k IS NOT NULL THEN
    json_exists(j, pg._pointer([k])) AND json_type(j) = 'OBJECT'
    OR json_type(j) = 'ARRAY' AND json_contains(j, to_json(k)) OR json_type(j) = 'VARCHAR' AND json_extract_string(j, '$') = k END;
CREATE OR REPLACE MACRO pg.jsonb_exists_any(j, k) AS CASE WHEN j IS NOT NULL AND k IS NOT NULL THEN
    len(list_filter(k, lambda e: e IS NOT NULL AND pg.jsonb_exists(j, e))) > 0 END;
CREATE OR REPLACE MACRO pg.jsonb_exists_all(j, k) AS CASE WHEN j IS NOT NULL AND k IS NOT NULL THEN
    len(list_filter(k, lambda e: e IS NOT NULL AND NOT coalesce(pg.jsonb_exists(j, e), false))) = 0 END;
-- The operator ||: objects are merged, where the right one's fields win; other values are concatenated as arrays.
CREATE OR REPLACE MACRO pg._field_texts(j, keys) AS
    list_transform(keys, lambda k: to_json(k)::VARCHAR || ':' || json_extract(j, pg._pointer([k]))::VARCHAR);
CREATE OR REPLACE MACRO pg._object(fields) AS ('{' || array_to_string(fields, ',') || '}')::JSON;
-- jsonb_object_agg: the last of equal names counts.
CREATE OR REPLACE MACRO pg.jsonb_field(k, v) AS
    {'size': strlen(k), 'name': k, 'value': coalesce(v::VARCHAR, 'null')};
CREATE OR REPLACE MACRO pg._named_fields(fields) AS list_sort(list_transform(fields, lambda _field, _place:
    {'size': coalesce(_field['size'], pg.raise('22023', 'field name must not be null')::BIGINT), 'name': _field['name'],
     'place': _place, 'value': _field['value']}));
CREATE OR REPLACE MACRO pg._last_fields(fields) AS pg._object(list_transform(
    list_filter(list_zip(fields, fields[2:]), lambda f: f[2] IS NULL OR f[2]['name'] <> f[1]['name']),
    lambda f: to_json(f[1]['name'])::VARCHAR || ':' || f[1]['value']));
CREATE OR REPLACE MACRO pg.jsonb_of_fields(fields) AS
    CASE WHEN fields IS NOT NULL THEN pg._last_fields(pg._named_fields(fields)) END;
-- string_agg with a separator for each text, which is written before the text.
CREATE OR REPLACE MACRO pg.joined_text(t, s) AS {'text': t, 'separator': s};
CREATE OR REPLACE MACRO pg._joined(_texts) AS if(len(_texts) > 0, array_to_string(list_transform(_texts,
    lambda _each, _place: if(_place = 1, '', coalesce(_each['separator'], '')) || _each['text']), ''), NULL);
CREATE OR REPLACE MACRO pg.join_texts(a) AS pg._joined(list_filter(a, lambda t: t['text'] IS NOT NULL));
-- An integer power by squaring, with the roundings of RisingWave's (`f64::powi`).
CREATE OR REPLACE MACRO pg._natural_power(base, n) AS list_reduce(
    list_prepend({'power': 1::DOUBLE, 'square': base, 'is_set': 0},
        list_transform(range(0, 32), lambda _bit: {'power': 0::DOUBLE, 'square': 0::DOUBLE, 'is_set': (n >> _bit) & 1})),
    lambda _made, _bit: {'power': _made['power'] * if(_bit['is_set'] = 1, _made['square'], 1),
                         'square': _made['square'] * _made['square'], 'is_set': 0})['power'];
CREATE OR REPLACE MACRO pg._integer_power(base, n) AS
    if(n < 0, 1 / pg._natural_power(base, -n), pg._natural_power(base, n));
-- approx_percentile: values with the same ceil(log(value)) to the base (1 + error) / (1 - error) share a bucket.
CREATE OR REPLACE MACRO pg._bucket_middle(x, base) AS CASE WHEN x = 0 OR NOT isfinite(x) THEN x ELSE
    sign(x) * (2 * pg._integer_power(base, ceil(ln(abs(x)) / ln(base))::BIGINT) / (base + 1)) END;
CREATE OR REPLACE MACRO pg._at_fraction(a, p) AS
    if(p BETWEEN 0 AND 1, a[floor(p * (len(a) - 1))::BIGINT + 1],
       pg.raise('22003', 'percentile value ' || p || ' is not between 0 and 1')::DOUBLE);
CREATE OR REPLACE MACRO pg.sketched_percentile(a, p, e) AS
    pg._bucket_middle(pg._at_fraction(list_filter(a, lambda x: x IS NOT NULL), p), (1 + e) / (1 - e));
-- The totals of months, days and microseconds; NULL for none, and where one does not fit into an interval.
CREATE OR REPLACE MACRO pg._interval_totals(a) AS [
    list_sum(list_transform(a, lambda x: pg._months(x)::HUGEINT)),
    list_sum(list_transform(a, lambda x: datepart('day', x)::HUGEINT)),
    list_sum(list_transform(a, lambda x: pg._micros(x)::HUGEINT))];
CREATE OR REPLACE MACRO pg._interval_of(totals) AS pg._interval(
    TRY_CAST(totals[1] AS INTEGER), TRY_CAST(totals[2] AS INTEGER), TRY_CAST(totals[3] AS BIGINT));
CREATE OR REPLACE MACRO pg.try_sum_of_intervals(a) AS
    pg._interval_of(pg._interval_totals(list_filter(a, lambda x: x IS NOT NULL)));
CREATE OR REPLACE MACRO pg.try_avg_of_intervals(a) AS
    pg.try_sum_of_intervals(a) * (1 / nullif(list_count(a), 0)::DOUBLE);
CREATE OR REPLACE MACRO pg._interval_or_raise(total, a) AS
    CASE WHEN total IS NULL AND list_count(a) > 0
         THEN pg.raise('22008', 'interval out of range')::VARCHAR::INTERVAL ELSE total END;
CREATE OR REPLACE MACRO pg.sum_of_intervals(a) AS pg._interval_or_raise(pg.try_sum_of_intervals(a), a);
CREATE OR REPLACE MACRO pg.avg_of_intervals(a) AS pg._interval_or_raise(pg.try_avg_of_intervals(a), a);
CREATE OR REPLACE MACRO pg._days(x) AS datepart('day', x);
-- Sums and averages of intervals, from the sums of their months, days and microseconds, and their count. An average's
-- fractions of months are days and those of days are time, as in interval_div of PostgreSQL's timestamp.c.
CREATE OR REPLACE MACRO pg._interval_field(total, whole) AS
    if(whole IS NULL AND total IS NOT NULL, pg.raise('22008', 'interval out of range')::BIGINT, whole);
CREATE OR REPLACE MACRO pg._interval_sum(m, d, us, n) AS CASE WHEN n > 0 THEN pg._interval(
    pg._interval_field(m, TRY_CAST(m AS INTEGER)), pg._interval_field(d, TRY_CAST(d AS INTEGER)),
    pg._interval_field(us, TRY_CAST(us AS BIGINT))) END;
CREATE OR REPLACE MACRO pg._to_micros(x) AS round_even((x) * 1e6, 0) / 1e6;
CREATE OR REPLACE MACRO pg._interval_average(m, d, us, n) AS CASE WHEN n > 0 THEN
    list_transform(list_transform(list_transform([{
        m: pg._interval_field(m, TRY_CAST(m AS INTEGER)) / n::DOUBLE,
        d: pg._interval_field(d, TRY_CAST(d AS INTEGER)) / n::DOUBLE,
        us: pg._interval_field(us, TRY_CAST(us AS BIGINT)) / n::DOUBLE}],
    lambda _i: {m: trunc(_i['m']), d: _i['d'], us: _i['us'], md: pg._to_micros((_i['m'] - trunc(_i['m'])) * 30)}),
    lambda _i: {m: _i['m'], d: trunc(_i['d']) + trunc(_i['md']), us: _i['us'],
               s: pg._to_micros((_i['d'] - trunc(_i['d']) + _i['md'] - trunc(_i['md'])) * 86400)}),
    lambda _i: pg._interval(_i['m'], _i['d'] + trunc(_i['s'] / 86400), round_even(
        _i['us'] + (_i['s'] - trunc(_i['s'] / 86400) * 86400) * 1e6, 0)::BIGINT))[1] END;
CREATE OR REPLACE MACRO pg._items(j) AS if(json_type(j) = 'ARRAY', json_extract(j, '$[*]')::JSON[], [j::JSON]);
CREATE OR REPLACE MACRO pg.jsonb_concat(a, b) AS
    CASE WHEN a IS NULL OR b IS NULL THEN NULL
         WHEN json_type(a) = 'OBJECT' AND json_type(b) = 'OBJECT' THEN
            pg._object(list_concat(
                pg._field_texts(a, list_filter(json_keys(a), lambda k: NOT list_contains(json_keys(b), k))),
                pg._field_texts(b, json_keys(b))))
         ELSE to_json(list_concat(pg._items(a), pg._items(b))) END;
-- An object's keys in jsonb's order, shorter keys first. In a correlated subquery, DuckDB (1.5.5) resolves a lambda's
-- parameter as a column of the same name if the lambda makes a struct: such parameters have names that no column has.
CREATE OR REPLACE MACRO pg._sorted_keys(j) AS list_transform(list_sort(list_transform(
    list_distinct(json_keys(j)), lambda _key: {'size': strlen(_key), 'key': _key})), lambda k: k['key']);
CREATE OR REPLACE MACRO pg._of_kind(j, kind, message) AS
    if(coalesce(json_type(j), kind) = kind, j, pg.raise('22023', message)::VARCHAR::JSON);
CREATE OR REPLACE MACRO pg.jsonb_elements(j) AS
    json_extract(pg._of_kind(j, 'ARRAY', 'cannot extract elements from ' ||
        if(json_type(j) = 'OBJECT', 'an object', 'a scalar')), '$[*]')::JSON[];
CREATE OR REPLACE MACRO pg.jsonb_element_texts(j) AS list_transform(pg.jsonb_elements(j), lambda e: pg._unquoted(e));
CREATE OR REPLACE MACRO pg.jsonb_keys(j, called) AS pg._sorted_keys(pg._of_kind(j, 'OBJECT', 'cannot call ' || called ||
    ' on ' || CASE WHEN contains(called, 'each') THEN 'a non-object' WHEN json_type(j) = 'ARRAY' THEN 'an array'
                   ELSE 'a scalar' END));
CREATE OR REPLACE MACRO pg.jsonb_values(j) AS
    list_transform(pg._sorted_keys(j), lambda k: json_extract(j, pg._pointer([k])));
CREATE OR REPLACE MACRO pg.jsonb_value_texts(j) AS
    list_transform(pg._sorted_keys(j), lambda k: pg._unquoted(json_extract(j, pg._pointer([k]))));
-- An object, and the objects of an array, whose fields are columns.
-- A lambda names what it is of once: DuckDB plans an argument anew wherever a macro names it, and those of records
-- contain one another.
CREATE OR REPLACE MACRO pg.jsonb_record(j) AS list_transform([j], lambda _j:
    pg._of_kind(_j, 'OBJECT', 'cannot call populate_composite on ' || if(json_type(_j) = 'ARRAY', 'an array', 'a scalar')))[1];
CREATE OR REPLACE MACRO pg._objects(documents, called) AS
    if(len(list_filter(documents, lambda e: json_type(e) <> 'OBJECT')) > 0,
       [pg.raise('22023', 'argument of ' || called || ' must be an array of objects')::VARCHAR::JSON], documents);
CREATE OR REPLACE MACRO pg.jsonb_records(j, called) AS pg._objects(json_extract(pg._of_kind(j, 'ARRAY',
    'cannot call ' || called || ' on ' || CASE WHEN starts_with(called, 'jsonb') THEN 'a non-array'
        WHEN json_type(j) = 'OBJECT' THEN 'an object' ELSE 'a scalar' END), '$[*]')::JSON[], called);
-- Values of such fields: JSON's null is NULL; an array of texts is the text of such an array.
CREATE OR REPLACE MACRO pg.jsonb_value(j) AS if(json_type(j) = 'NULL', NULL, j);
CREATE OR REPLACE MACRO pg._texts_in(j) AS pg.jsonb_element_texts(if(json_type(j) = 'ARRAY', j, NULL));
CREATE OR REPLACE MACRO pg.jsonb_array_of_texts(j) AS list_transform([j], lambda _j: CASE
    WHEN json_type(_j) = 'VARCHAR' THEN json_extract_string(_j, '$')
    WHEN json_type(_j) = 'NULL' THEN NULL
    WHEN json_type(_j) <> 'ARRAY' THEN pg.raise('22P02', 'expected JSON array')::VARCHAR
    WHEN json_type(_j, '$[0]') = 'ARRAY' THEN pg.raise('0A000', 'arrays of arrays of a document are not supported')::VARCHAR
    WHEN _j IS NOT NULL THEN '{' || array_to_string(list_transform(pg._texts_in(_j), lambda e: coalesce(
        '"' || replace(replace(e, '\', '\\'), '"', '\"') || '"', 'NULL')), ',') || '}' END)[1];
CREATE OR REPLACE MACRO pg.jsonb_array_of_documents(j) AS list_transform([j], lambda _j:
    list_transform(pg.jsonb_elements(pg.jsonb_value(_j)), lambda e: pg.jsonb_value(e)))[1];
CREATE OR REPLACE MACRO pg.text_within(x, n) AS if(length(rtrim(x, ' ')) > n,
    pg.raise('22001', 'value too long for type character varying(' || n || ')')::VARCHAR, x);
-- The document without fields, elements, or the element at a place, counted from 0 or, if negative, from the end.
CREATE OR REPLACE MACRO pg._at(j, k) AS TRY_CAST(k AS BIGINT) + if(TRY_CAST(k AS BIGINT) < 0, json_array_length(j)::BIGINT, 0);
CREATE OR REPLACE MACRO pg._without_item(j, k) AS to_json(list_filter(pg._items(j), lambda e, i: i - 1 <> pg._at(j, k)));
CREATE OR REPLACE MACRO pg._without_keys(j, keys) AS CASE
    WHEN j IS NULL OR keys IS NULL THEN NULL
    WHEN json_type(j) = 'OBJECT'
    THEN pg._object(pg._field_texts(j, list_filter(json_keys(j), lambda k: NOT coalesce(list_contains(keys, k), false))))
    WHEN json_type(j) = 'ARRAY' THEN to_json(list_filter(pg._items(j), lambda e:
        json_type(e) <> 'VARCHAR' OR NOT coalesce(list_contains(keys, json_extract_string(e, '$')), false)))
    ELSE pg.raise('22023', 'cannot delete from scalar')::VARCHAR::JSON END;
CREATE OR REPLACE MACRO pg.jsonb_without(j, k) AS CASE
    WHEN k IS NULL THEN NULL
    WHEN typeof(k) LIKE '%[]' THEN pg._without_keys(j, TRY_CAST(k AS VARCHAR[]))
    WHEN NOT pg._is_place(k) THEN pg._without_keys(j, [TRY_CAST(k AS VARCHAR)])
    WHEN json_type(j) = 'ARRAY' THEN pg._without_item(j, k)
    WHEN json_type(j) = 'OBJECT' THEN pg.raise('22023', 'cannot delete from object using integer index')::VARCHAR::JSON
    WHEN j IS NOT NULL THEN pg.raise('22023', 'cannot delete from scalar')::VARCHAR::JSON END;
-- A document with a field or an item replaced or, if `creates`, added; NULL removes it.
CREATE OR REPLACE MACRO pg._with(j, k, v, creates) AS CASE
    WHEN json_type(j) = 'OBJECT' THEN CASE
        WHEN NOT list_contains(json_keys(j), k) AND NOT creates THEN j
        WHEN v IS NULL THEN pg._without_keys(j, [k])
        ELSE pg.jsonb_concat(j, ('{' || to_json(k) || ':' || v || '}')::JSON) END
    WHEN json_type(j) = 'ARRAY' THEN CASE
        WHEN pg._at(j, k) BETWEEN 0 AND json_array_length(j)::BIGINT - 1 THEN to_json(list_filter(list_transform(
            pg._items(j), lambda e, i: if(i - 1 = pg._at(j, k), v, e)), lambda e: e IS NOT NULL))
        WHEN NOT creates OR v IS NULL THEN j
        WHEN TRY_CAST(k AS INTEGER) < 0 THEN to_json(list_prepend(v, pg._items(j)))
        ELSE to_json(list_append(pg._items(j), v)) END
    ELSE j END;
-- The documents along a path, beginning with the whole document.
CREATE OR REPLACE MACRO pg._way(j, path) AS
    list_transform(range(0, len(path)), lambda _place: {
        'document': pg.json_at(j, path[1:_place]), 'key': path[_place + 1], 'level': _place + 1});
-- The first of them at which the path cannot continue.
CREATE OR REPLACE MACRO pg._fault(way) AS list_filter(way, lambda s: s['document'] IS NOT NULL
    AND (s['key'] IS NULL OR json_type(s['document']) = 'ARRAY' AND TRY_CAST(s['key'] AS INTEGER) IS NULL))[1];
CREATE OR REPLACE MACRO pg._raise_fault(fault) AS pg.raise(if(fault['key'] IS NULL, '22004', '22P02'),
    'path element at position ' || fault['level'] || if(fault['key'] IS NULL, ' is null',
    ' is not an integer: "' || fault['key'] || '"'))::VARCHAR::JSON;
-- Rebuilds the documents from the last to the first, each with its changed child; no change if one is missing.
CREATE OR REPLACE MACRO pg._along(j, path, v, creates) AS CASE
    WHEN j IS NULL OR path IS NULL THEN NULL
    WHEN NOT creates AND json_array_length(j) = 0 AND coalesce(len(json_keys(j)), 0) = 0 THEN j
    WHEN pg._fault(pg._way(j, path)) IS NOT NULL THEN pg._raise_fault(pg._fault(pg._way(j, path)))
    WHEN len(path) = 0 OR len(list_filter(pg._way(j, path), lambda s: s['document'] IS NULL)) > 0 THEN j
    ELSE list_reduce(list_prepend({'document': v, 'key': '', 'level': 0::BIGINT}, list_reverse(pg._way(j, path))),
        lambda _made, _step: {
            'document': pg._with(_step['document'], _step['key'], _made['document'], creates),
                            'key': '', 'level': 0::BIGINT})['document'] END;
CREATE OR REPLACE MACRO pg._changeable(j) AS
    if(json_type(j) IN ('OBJECT', 'ARRAY') OR j IS NULL, j, pg.raise('22023', 'cannot set path in scalar')::VARCHAR::JSON);
CREATE OR REPLACE MACRO pg.jsonb_set
    (j, path, v) AS if(v IS NULL, NULL, pg._along(pg._changeable(j), path, v, true)),
    (j, path, v, creates) AS if(v IS NULL OR creates IS NULL, NULL, pg._along(pg._changeable(j), path, v, creates));
CREATE OR REPLACE MACRO pg._set_null(j, path, creates, treatment) AS CASE treatment
    WHEN 'use_json_null' THEN pg.jsonb_set(j, path, 'null'::JSON, creates)
    WHEN 'delete_key' THEN pg._along(pg._changeable(j), path, NULL::JSON, false)
    WHEN 'return_target' THEN j
    WHEN 'raise_exception' THEN pg.raise_with('22004', 'JSON value must not be null',
        'Exception was raised because null_value_treatment is "raise_exception".',
        'To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.')::VARCHAR::JSON
    ELSE pg.raise('22023', 'null_value_treatment must be "delete_key", "return_target", "use_json_null", or '
        || '"raise_exception"')::VARCHAR::JSON END;
CREATE OR REPLACE MACRO pg._set_lax(j, path, v, creates, treatment) AS CASE
    WHEN j IS NULL OR path IS NULL OR creates IS NULL THEN NULL
    WHEN v IS NULL THEN pg._set_null(j, path, creates, treatment)
    ELSE pg.jsonb_set(j, path, v, creates) END;
CREATE OR REPLACE MACRO pg.jsonb_set_lax
    (j, path, v) AS pg._set_lax(j, path, v, true, 'use_json_null'),
    (j, path, v, creates) AS pg._set_lax(j, path, v, creates, 'use_json_null'),
    (j, path, v, creates, treatment) AS pg._set_lax(j, path, v, creates, treatment);
CREATE OR REPLACE MACRO pg.jsonb_without_path(j, path) AS pg._along(pg._changeable(j), path, NULL::JSON, false);
-- Null fields are removed from the text, outside of strings, and then commas left at an end.
CREATE OR REPLACE MACRO pg._without_null_fields(j) AS regexp_replace(regexp_replace(j::VARCHAR,
    '"(?:\\.|[^"\\])*":null,?|("(?:\\.|[^"\\])*")', '\1', 'gs'), ',(\})|("(?:\\.|[^"\\])*")', '\1\2', 'gs')::JSON;
-- The same also without the nulls in arrays, of which one may be left behind a comma.
CREATE OR REPLACE MACRO pg._without_null_items(j) AS regexp_replace(regexp_replace(j::VARCHAR,
    '("(?:\\.|[^"\\])*")|null,?', '\1', 'gs'), '("(?:\\.|[^"\\])*")|,(\])', '\1\2', 'gs')::JSON;
CREATE OR REPLACE MACRO pg.jsonb_strip_nulls
    (j) AS pg._without_null_fields(j),
    (j, in_arrays) AS if(in_arrays AND json_type(j) <> 'NULL', pg._without_null_items(pg._without_null_fields(j)),
                         if(in_arrays IS NULL, NULL, pg._without_null_fields(j)));
-- The place of a new item before or after the one at a path's end, or of a new field.
CREATE OR REPLACE MACRO pg._insert_place(j, k, is_after) AS
    greatest(0, least(json_array_length(j)::BIGINT, pg._at(j, k) + is_after::BIGINT));
CREATE OR REPLACE MACRO pg._inserted(j, k, v, is_after) AS CASE
    WHEN json_type(j) = 'ARRAY' THEN to_json(list_concat(pg._items(j)[:pg._insert_place(j, k, is_after)], [v],
                                                         pg._items(j)[pg._insert_place(j, k, is_after) + 1:]))
    WHEN json_type(j) = 'OBJECT' AND list_contains(json_keys(j), k)
    THEN pg.raise('22023', 'cannot replace existing key')::VARCHAR::JSON
    ELSE pg._with(j, k, v, true) END;
CREATE OR REPLACE MACRO pg._insert(j, path, v, is_after) AS CASE
    WHEN j IS NULL OR path IS NULL OR v IS NULL OR is_after IS NULL THEN NULL
    WHEN pg._fault(pg._way(j, path)) IS NOT NULL THEN pg._raise_fault(pg._fault(pg._way(j, path)))
    WHEN len(path) = 0 OR pg.json_at(j, path[:-2]) IS NULL THEN j
    WHEN len(path) = 1 THEN pg._inserted(j, path[1], v, is_after)
    ELSE pg._along(j, path[:-2], pg._inserted(pg.json_at(j, path[:-2]), path[-1], v, is_after), false) END;
CREATE OR REPLACE MACRO pg.jsonb_insert
    (j, path, v) AS pg._insert(pg._changeable(j), path, v, false),
    (j, path, v, is_after) AS pg._insert(pg._changeable(j), path, v, is_after);
-- An object from texts: keys and values in turn, or in two arrays. The last of equal keys counts.
CREATE OR REPLACE MACRO pg._object_key(k) AS
    coalesce(k, pg.raise('22004', 'null value not allowed for object key')::VARCHAR);
CREATE OR REPLACE MACRO pg._object_of(keys, texts) AS CASE
    WHEN len(keys) <> len(texts) THEN pg.raise('2202E', 'mismatched array dimensions')::VARCHAR::JSON
    WHEN keys IS NOT NULL AND texts IS NOT NULL THEN pg._object(list_filter(list_transform(keys, lambda k, i:
        if(list_contains(keys[i + 1:], k), NULL,
           to_json(pg._object_key(k))::VARCHAR || ':' || coalesce(to_json(texts[i])::VARCHAR, 'null'))),
        lambda e: e IS NOT NULL)) END;
CREATE OR REPLACE MACRO pg.jsonb_object
    (a) AS if(len(a) % 2 = 1, pg.raise('2202E', 'array must have even number of elements')::VARCHAR::JSON,
              pg._object_of(a[1:len(a):2], a[2:len(a):2])),
    (keys, texts) AS pg._object_of(keys, texts);
CREATE OR REPLACE MACRO pg._in_pairs(a) AS if(len(list_filter(a, lambda e: len(e) <> 2)) > 0,
    [pg.raise('2202E', 'array must have two columns')::VARCHAR], flatten(a));
CREATE OR REPLACE MACRO pg.jsonb_object_of_pairs(a) AS pg.jsonb_object(pg._in_pairs(a));
CREATE OR REPLACE MACRO pg._json_object_of(keys, texts) AS CASE
    WHEN len(keys) <> len(texts) THEN pg.raise('2202E', 'mismatched array dimensions')::VARCHAR
    WHEN keys IS NOT NULL AND texts IS NOT NULL THEN '{' || array_to_string(list_transform(keys, lambda k, i:
        to_json(pg._object_key(k))::VARCHAR || ' : ' || coalesce(to_json(texts[i])::VARCHAR, 'null')), ', ') || '}' END;
CREATE OR REPLACE MACRO pg.json_object
    (a) AS if(len(a) % 2 = 1, pg.raise('2202E', 'array must have even number of elements')::VARCHAR,
              pg._json_object_of(a[1:len(a):2], a[2:len(a):2])),
    (keys, texts) AS pg._json_object_of(keys, texts);
CREATE OR REPLACE MACRO pg.json_object_of_pairs(a) AS pg.json_object(pg._in_pairs(a));
CREATE OR REPLACE MACRO pg.jsonb_pretty(j) AS regexp_replace(regexp_replace(json_pretty(pg.jsonb_text(j)::JSON),
    '(?m)^(\s*)("(?:\\.|[^"\\])*": )?\[\](,?)$', E'\\1\\2[\n\\1]\\3', 'g'),
    '(?m)^(\s*)("(?:\\.|[^"\\])*": )?\{\}(,?)$', E'\\1\\2{\n\\1}\\3', 'g');

-- Arrays.
CREATE OR REPLACE MACRO pg.array_fill(v, sizes) AS CASE
    WHEN sizes IS NULL THEN [v][:pg.raise('22004', 'dimension array or low bound array cannot be null')]
    WHEN list_contains(list_transform(sizes, lambda n: n IS NULL), true)
    THEN [v][:pg.raise('22004', 'dimension values cannot be null')]
    WHEN list_contains(list_transform(sizes, lambda n: n < 0), true)
    THEN [v][:pg.raise('54000', 'array size exceeds the maximum allowed (134217727)')]
    WHEN len(sizes) > 1
    THEN [v][:pg.raise('0A000', 'array_fill of several dimensions that are no constant array is not supported')]
    ELSE list_transform(range(0, coalesce(sizes[1], 0)), lambda n: v) END;
-- Subscripts count from 1; DuckDB would count those below 1 from the end.
CREATE OR REPLACE MACRO pg.array_element(a, n) AS if(n > 0, a[n], NULL);
CREATE OR REPLACE MACRO pg.array_slice(a, l, h) AS
    if(l IS NULL OR h IS NULL, NULL, a[if(l < 1, 1, l):if(h < 1, 0, h)]);
-- The length of a dimension: that of the first array in it.
CREATE OR REPLACE MACRO pg._depth(a) AS len(regexp_extract_all(typeof(a), '\[\]'))::INTEGER;
CREATE OR REPLACE MACRO pg.array_length(a) AS len(a)::INTEGER, (a, n) AS nullif(CASE WHEN n = 1 THEN len(a)
    WHEN n BETWEEN 2 AND pg._depth(a) THEN json_array_length(to_json(a), '$' || repeat('[0]', least(greatest(n, 1), 9) - 1)) END, 0)::INTEGER;
CREATE OR REPLACE MACRO pg.array_upper(a, n) AS pg.array_length(a, n);
CREATE OR REPLACE MACRO pg.array_lower(a, n) AS if(pg.array_length(a, n) > 0, 1, NULL);
CREATE OR REPLACE MACRO pg._null_count(are_null, is_null) AS len(list_filter(are_null, lambda e: e = is_null))::INTEGER;
CREATE OR REPLACE MACRO pg.array_ndims(a) AS if(len(a) > 0, pg._depth(a), NULL);
CREATE OR REPLACE MACRO pg.array_dims(a) AS if(len(a) > 0, array_to_string(list_transform(
    range(1, pg._depth(a) + 1), lambda n: '[1:' || pg.array_length(a, n) || ']'), ''), NULL);
CREATE OR REPLACE MACRO pg.array_subscripts
    (a, n) AS list_transform(range(1, pg.array_length(a, n) + 1), lambda i: i::INTEGER),
    (a, n, is_reverse) AS list_transform(range(1, pg.array_length(a, n) + 1), lambda i:
        if(is_reverse, pg.array_length(a, n) + 1 - i, i)::INTEGER);
-- The end of a series in a select list, whose rows DuckDB makes all at once.
CREATE OR REPLACE MACRO pg._too_long(way, step) AS if(way / nullif(step, 0) > 1e7, pg.raise_with(
    '54000', 'series too long', '', 'generate_series in FROM has no limit.'), 0) <> 0;
CREATE OR REPLACE MACRO pg._end_within(a, b, step) AS if(pg._too_long(b::DOUBLE - a::DOUBLE, step::DOUBLE), NULL, b);
CREATE OR REPLACE MACRO pg._end_of_times(a, b, step) AS if(pg._too_long(epoch(b) - epoch(a), epoch(step)), NULL, b);
CREATE OR REPLACE MACRO pg._series_end
    (a BIGINT, b BIGINT) AS pg._end_within(a, b, 1), (a BIGINT, b BIGINT, step BIGINT) AS pg._end_within(a, b, step),
    (a TIMESTAMP, b TIMESTAMP, step INTERVAL) AS pg._end_of_times(a, b, step),
    (a TIMESTAMPTZ, b TIMESTAMPTZ, step INTERVAL) AS pg._end_of_times(a, b, step), (a, b) AS b, (a, b, step) AS b;
CREATE OR REPLACE MACRO pg.series_of_integers(series) AS series::INTEGER[];
CREATE OR REPLACE MACRO pg.series_of_numerics(a, b, step) AS
    list_transform([{a: a::DECIMAL(38,19), step: if(step = 0, pg.raise('22023', 'step size cannot equal zero'), step)::DECIMAL(38,19),
                     n: (pg._unscaled_quotient(b) - pg._unscaled_quotient(a)) // pg._unscaled_quotient(step),
                     is_empty: if(step > 0, a > b, a < b)}], lambda _v:
        list_transform(range(0, if(_v['is_empty'] OR pg._too_long(_v['n'], 1), 0, _v['n'] + 1)::BIGINT), lambda i: _v['a'] + pg.multiply_quotients(_v['step'], i)))[1];
CREATE OR REPLACE MACRO pg.side_by_side(lists, is_all) AS list_transform(
    range(1, if(is_all OR len(lists[1]) = 0, len(lists[1]), if(lists[1] IS NULL, NULL, 1)) + 1), lambda n: list_transform(lists, lambda l: l[n]));
CREATE OR REPLACE MACRO pg.cardinality(a) AS len(a)::INTEGER;
CREATE OR REPLACE MACRO pg.array_append(a, e) AS list_append(a, e);
CREATE OR REPLACE MACRO pg.array_prepend(e, a) AS list_prepend(e, a);
CREATE OR REPLACE MACRO pg.array_cat(a, b) AS if(a IS NULL AND b IS NULL, NULL, list_concat(a, b));
-- An array with one of its element type behind or before it, where nothing is added for an empty one.
CREATE OR REPLACE MACRO pg.array_cat_behind(a, e) AS if(len(e) > 0, list_append(a, e), a);
CREATE OR REPLACE MACRO pg.array_cat_before(e, a) AS if(len(e) > 0, list_prepend(e, a), a);
CREATE OR REPLACE MACRO pg.array_remove(a, x) AS list_filter(a, lambda e: e IS DISTINCT FROM x);
CREATE OR REPLACE MACRO pg.array_replace(a, x, y) AS
    list_transform(a, lambda e: CASE WHEN e IS NOT DISTINCT FROM x THEN y ELSE e END);
CREATE OR REPLACE MACRO pg.array_position
    (a, x) AS nullif(list_position(a, x), 0)::INTEGER,
    (a, x, start) AS CASE
        WHEN a IS NULL THEN NULL
        WHEN start IS NULL THEN pg.raise('22004', 'initial position must not be null')
        ELSE (nullif(list_position(a[greatest(start, 1):], x), 0) + greatest(start, 1) - 1)::INTEGER END;
CREATE OR REPLACE MACRO pg.array_positions(a, x) AS
    list_transform(list_filter(range(1, len(a) + 1), lambda n: a[n] IS NOT DISTINCT FROM x), lambda n: n::INTEGER);
CREATE OR REPLACE MACRO pg.array_contains(a, b) AS
    CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN list_has_all(a, b) AND len(list_filter(b, lambda e: e IS NULL)) = 0 END;
CREATE OR REPLACE MACRO pg.array_contained(a, b) AS pg.array_contains(b, a);
CREATE OR REPLACE MACRO pg.array_overlaps(a, b) AS list_has_any(a, b);
CREATE OR REPLACE MACRO pg.array_distinct(a) AS list_filter(a, lambda e, i: coalesce(list_position(a, e) = i, false));
CREATE OR REPLACE MACRO pg.array_sort(a) AS list_sort(a, 'ASC', 'NULLS LAST');
CREATE OR REPLACE MACRO pg.array_min(a) AS list_min(a);
-- The groups of a match, the first being the whole match: as many as a computed pattern has.
CREATE OR REPLACE MACRO pg._group_count(p) AS
    pg._groups_in(regexp_replace(regexp_replace(p, '\\.', '', 'g'), '\[\^?\]?[^\]]*\]', '', 'g'));
CREATE OR REPLACE MACRO pg.regexp_groups(found, p) AS
    if(pg._group_count(p) = 0, found[1:1], if(pg._group_count(p) < len(found), found[2:pg._group_count(p) + 1],
       pg.raise('0A000', 'regexp_match with more than 9 groups in a pattern that is not a constant')::VARCHAR[]));
CREATE OR REPLACE MACRO pg.json_key(x, place) AS
    coalesce(pg.to_text(x), pg.raise('22023', 'argument ' || place || ': key must not be null')::VARCHAR);
CREATE OR REPLACE MACRO pg.array_max(a) AS list_max(a);
-- DuckDB does not check the total for overflow, but does check an addition.
CREATE OR REPLACE MACRO pg.array_sum
    (a SMALLINT[]) AS list_sum(a)::BIGINT, (a INTEGER[]) AS list_sum(a)::BIGINT, (a) AS list_sum(a) + 0::TINYINT;
CREATE OR REPLACE MACRO pg.trim_array(a, n) AS a[1:if(n BETWEEN 0 AND len(a), len(a) - n, pg.raise(
    '2202E', 'number of elements to trim must be between 0 and ' || len(a)))];
-- x = ANY(..) and x = ALL(..), over the list of the comparisons with each element.
CREATE OR REPLACE MACRO pg.any_true(a) AS
    CASE WHEN a IS NULL THEN NULL WHEN len(list_filter(a, lambda e: e)) > 0 THEN true
         WHEN len(list_filter(a, lambda e: e IS NULL)) > 0 THEN NULL ELSE false END;
CREATE OR REPLACE MACRO pg.all_true(a) AS
    CASE WHEN a IS NULL THEN NULL WHEN len(list_filter(a, lambda e: NOT e)) > 0 THEN false
         WHEN len(list_filter(a, lambda e: e IS NULL)) > 0 THEN NULL ELSE true END;

-- range() in FROM: the integers from `a` on that are before `b`.
CREATE OR REPLACE MACRO pg._numbers_before
    (a, b) AS range(a::BIGINT, b::BIGINT), (a, b, step) AS range(a::BIGINT, b::BIGINT, nullif(step, 0)::BIGINT);

-- Time windows for TUMBLE and HOP, aligned to the epoch; lengths are in microseconds.
CREATE OR REPLACE MACRO pg.tumble_start
    (x TIMESTAMPTZ, us) AS time_bucket(to_microseconds(us), x, TIMESTAMPTZ '1970-01-01 00:00:00+00'),
    (x TIMESTAMP, us) AS time_bucket(to_microseconds(us), x, TIMESTAMP '1970-01-01');
CREATE OR REPLACE MACRO pg.shift_time(x, us) AS x + to_microseconds(us);
