"""How many arguments functions take, from PostgreSQL's `pg_proc` and RisingWave's documentation.

Calls with another number are told from all others before anything reads their arguments by place.
"""

from __future__ import annotations

_ANY = 1000  # more than a call may have

_NAMES = {
    (0, 0): "now pi random current_database current_schema version clock_timestamp statement_timestamp "
    "transaction_timestamp gen_random_uuid uuid_generate_v4 row_number",
    (0, 7): "make_interval",
    (0, _ANY): "json_build_array json_build_object jsonb_build_array jsonb_build_object",
    (1, 1): "abs acos acosd acosh array_agg array_dims array_distinct array_flatten array_max array_min "
    "array_ndims array_reverse array_sort array_sum ascii asin asind asinh atan atand atanh avg bit_and bit_count "
    "bit_length bit_or bit_xor bool_and bool_or cardinality casefold cbrt ceil ceiling char_length "
    "character_length chr cos cosd cosh cot cotd count crc32 crc32c date degrees every exp factorial first_value "
    "floor gamma initcap isfinite json_agg json_array_elements json_array_elements_text json_array_length json_each "
    "json_each_text json_object_keys json_typeof jsonb_agg jsonb_array_elements jsonb_array_elements_text "
    "jsonb_array_length jsonb_each jsonb_each_text jsonb_object_keys jsonb_pretty jsonb_typeof justify_days "
    "justify_hours justify_interval last_value lgamma ln log10 lower max md5 min min_scale ntile octet_length "
    "pg_typeof quote_ident quote_literal quote_nullable radians reverse scale sha1 sha224 sha256 sha384 "
    "sha512 sign sin sind sinh int8recv int8send "
    "map_entries map_from_entries map_keys map_length map_values "
    "sqrt stddev stddev_pop stddev_samp sum tan tand tanh to_hex to_json to_jsonb trim_scale unistr upper var_pop "
    "var_samp variance",
    (1, 2): "age approx_percentile array_length array_to_json btrim json_object json_strip_nulls jsonb_object "
    "jsonb_strip_nulls length log ltrim round row_to_json rtrim to_timestamp trunc",
    (1, 3): "lag lead",
    (1, _ANY): "concat format num_nonnulls num_nulls unnest",
    (2, 2): "arg_max arg_min array_append array_cat array_lower array_positions array_prepend array_remove "
    "array_transform array_upper atan2 atan2d convert_from convert_to corr covar_pop covar_samp date_part decode div "
    "encode gcd get_bit get_byte json_object_agg jsonb_exists jsonb_exists_all jsonb_exists_any jsonb_object_agg lcm "
    "left mod "
    "nth_value pow power regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy "
    "regr_syy repeat right starts_with string_agg strpos timezone to_char to_date to_number trim_array "
    "jsonb_populate_map map_access map_cat map_contains map_delete map_filter map_from_key_values",
    (2, 3): "pgp_sym_decrypt pgp_sym_decrypt_bytea pgp_sym_encrypt pgp_sym_encrypt_bytea "
    "array_fill array_join array_position array_to_string date_trunc generate_series generate_subscripts "
    "lpad regexp_like regexp_match regexp_matches regexp_split_to_array regexp_split_to_table rpad string_to_array "
    "string_to_table substr substring",
    (2, 4): "jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first "
    "regexp_count width_bucket",
    (2, 6): "regexp_substr",
    (2, 7): "regexp_instr",
    (2, _ANY): "concat_ws json_extract_path json_extract_path_text jsonb_extract_path jsonb_extract_path_text",
    (3, 3): "array_replace convert date_bin decrypt encrypt hmac "
    "make_date make_time map_insert replace set_bit set_byte split_part "
    "translate",
    (4, 4): "decrypt_iv encrypt_iv",
    (3, 4): "jsonb_insert jsonb_set overlay",
    (3, 5): "jsonb_set_lax",
    (3, 6): "regexp_replace",
    (6, 6): "make_timestamp",
    (6, 7): "make_timestamptz",
}  # fmt: skip
# Sparkwave's own, which operators and set-returning functions become.
_OWN = {
    (1, 1): "json_element_texts json_elements jsonb_canonical jsonb_element_texts jsonb_elements jsonb_key "
    "jsonb_keys_of_each jsonb_record json_record jsonb_to_record jsonb_to_recordset json_to_record json_to_recordset "
    "justify_intervals",
    (2, 2): "array_contained array_contains array_overlaps json_at json_keys json_text_at json_value_texts json_values "
    "is_json jsonb_keys jsonb_value_texts jsonb_values jsonb_without_path subtract",
    (2, 3): "array_subscripts regexp_all_matches",
}  # fmt: skip
COUNTS = {name: counts for named in (_NAMES, _OWN) for counts, names in named.items() for name in names.split()}


def takes(name: str, count: int) -> bool:
    """Return whether a function, if it is one of these, takes this number of arguments."""
    least, most = COUNTS.get(name, (0, _ANY))
    return least <= count <= most
