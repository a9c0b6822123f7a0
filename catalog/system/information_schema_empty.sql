-- information_schema: relations about kinds of objects that do not exist here.

CREATE OR REPLACE TABLE infs.attributes (
    udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, attribute_name VARCHAR, ordinal_position INTEGER,
    attribute_default VARCHAR, is_nullable VARCHAR, data_type VARCHAR, character_maximum_length INTEGER,
    character_octet_length INTEGER, character_set_catalog VARCHAR, character_set_schema VARCHAR,
    character_set_name VARCHAR, collation_catalog VARCHAR, collation_schema VARCHAR, collation_name VARCHAR,
    numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale INTEGER, datetime_precision
    INTEGER, interval_type VARCHAR, interval_precision INTEGER, attribute_udt_catalog VARCHAR,
    attribute_udt_schema VARCHAR, attribute_udt_name VARCHAR, scope_catalog VARCHAR, scope_schema VARCHAR,
    scope_name VARCHAR, maximum_cardinality INTEGER, dtd_identifier VARCHAR, is_derived_reference_attribute
    VARCHAR
);
CREATE OR REPLACE TABLE infs.character_sets (
    character_set_catalog VARCHAR, character_set_schema VARCHAR, character_set_name VARCHAR,
    character_repertoire VARCHAR, form_of_use VARCHAR, default_collate_catalog VARCHAR, default_collate_schema
    VARCHAR, default_collate_name VARCHAR
);
CREATE OR REPLACE TABLE infs.check_constraint_routine_usage (
    constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, specific_catalog VARCHAR,
    specific_schema VARCHAR, specific_name VARCHAR
);
CREATE OR REPLACE TABLE infs.collation_character_set_applicability (
    collation_catalog VARCHAR, collation_schema VARCHAR, collation_name VARCHAR, character_set_catalog VARCHAR,
    character_set_schema VARCHAR, character_set_name VARCHAR
);
CREATE OR REPLACE TABLE infs.column_column_usage (
    table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, dependent_column
    VARCHAR
);
CREATE OR REPLACE TABLE infs.column_domain_usage (
    domain_catalog VARCHAR, domain_schema VARCHAR, domain_name VARCHAR, table_catalog VARCHAR, table_schema
    VARCHAR, table_name VARCHAR, column_name VARCHAR
);
CREATE OR REPLACE TABLE infs.column_options (
    table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, option_name VARCHAR,
    option_value VARCHAR
);
CREATE OR REPLACE TABLE infs.column_udt_usage (
    udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, table_catalog VARCHAR, table_schema VARCHAR,
    table_name VARCHAR, column_name VARCHAR
);
CREATE OR REPLACE TABLE infs.data_type_privileges (
    object_catalog VARCHAR, object_schema VARCHAR, object_name VARCHAR, object_type VARCHAR, dtd_identifier
    VARCHAR
);
CREATE OR REPLACE TABLE infs.domain_constraints (
    constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, domain_catalog VARCHAR,
    domain_schema VARCHAR, domain_name VARCHAR, is_deferrable VARCHAR, initially_deferred VARCHAR
);
CREATE OR REPLACE TABLE infs.domain_udt_usage (
    udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, domain_catalog VARCHAR, domain_schema VARCHAR,
    domain_name VARCHAR
);
CREATE OR REPLACE TABLE infs.domains (
    domain_catalog VARCHAR, domain_schema VARCHAR, domain_name VARCHAR, data_type VARCHAR,
    character_maximum_length INTEGER, character_octet_length INTEGER, character_set_catalog VARCHAR,
    character_set_schema VARCHAR, character_set_name VARCHAR, collation_catalog VARCHAR, collation_schema
    VARCHAR, collation_name VARCHAR, numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale
    INTEGER, datetime_precision INTEGER, interval_type VARCHAR, interval_precision INTEGER, domain_default
    VARCHAR, udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, scope_catalog VARCHAR, scope_schema
    VARCHAR, scope_name VARCHAR, maximum_cardinality INTEGER, dtd_identifier VARCHAR
);
CREATE OR REPLACE TABLE infs._element_types (
    object_catalog VARCHAR, object_schema VARCHAR, object_name VARCHAR, object_type VARCHAR,
    collection_type_identifier VARCHAR, data_type VARCHAR, character_maximum_length INTEGER,
    character_octet_length INTEGER, character_set_catalog VARCHAR, character_set_schema VARCHAR,
    character_set_name VARCHAR, collation_catalog VARCHAR, collation_schema VARCHAR, collation_name VARCHAR,
    numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale INTEGER, datetime_precision
    INTEGER, interval_type VARCHAR, interval_precision INTEGER, domain_default VARCHAR, udt_catalog VARCHAR,
    udt_schema VARCHAR, udt_name VARCHAR, scope_catalog VARCHAR, scope_schema VARCHAR, scope_name VARCHAR,
    maximum_cardinality INTEGER, dtd_identifier VARCHAR
);
CREATE OR REPLACE TABLE infs.foreign_data_wrapper_options (
    foreign_data_wrapper_catalog VARCHAR, foreign_data_wrapper_name VARCHAR, option_name VARCHAR, option_value
    VARCHAR
);
CREATE OR REPLACE TABLE infs.foreign_data_wrappers (
    foreign_data_wrapper_catalog VARCHAR, foreign_data_wrapper_name VARCHAR, authorization_identifier VARCHAR,
    library_name VARCHAR, foreign_data_wrapper_language VARCHAR
);
CREATE OR REPLACE TABLE infs.foreign_server_options (
    foreign_server_catalog VARCHAR, foreign_server_name VARCHAR, option_name VARCHAR, option_value VARCHAR
);
CREATE OR REPLACE TABLE infs.foreign_servers (
    foreign_server_catalog VARCHAR, foreign_server_name VARCHAR, foreign_data_wrapper_catalog VARCHAR,
    foreign_data_wrapper_name VARCHAR, foreign_server_type VARCHAR, foreign_server_version VARCHAR,
    authorization_identifier VARCHAR
);
CREATE OR REPLACE TABLE infs.foreign_table_options (
    foreign_table_catalog VARCHAR, foreign_table_schema VARCHAR, foreign_table_name VARCHAR, option_name
    VARCHAR, option_value VARCHAR
);
CREATE OR REPLACE TABLE infs.foreign_tables (
    foreign_table_catalog VARCHAR, foreign_table_schema VARCHAR, foreign_table_name VARCHAR,
    foreign_server_catalog VARCHAR, foreign_server_name VARCHAR
);
CREATE OR REPLACE TABLE infs.parameters (
    specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR, ordinal_position INTEGER,
    parameter_mode VARCHAR, is_result VARCHAR, as_locator VARCHAR, parameter_name VARCHAR, data_type VARCHAR,
    character_maximum_length INTEGER, character_octet_length INTEGER, character_set_catalog VARCHAR,
    character_set_schema VARCHAR, character_set_name VARCHAR, collation_catalog VARCHAR, collation_schema
    VARCHAR, collation_name VARCHAR, numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale
    INTEGER, datetime_precision INTEGER, interval_type VARCHAR, interval_precision INTEGER, udt_catalog VARCHAR,
    udt_schema VARCHAR, udt_name VARCHAR, scope_catalog VARCHAR, scope_schema VARCHAR, scope_name VARCHAR,
    maximum_cardinality INTEGER, dtd_identifier VARCHAR, parameter_default VARCHAR
);
CREATE OR REPLACE TABLE infs.role_routine_grants (
    grantor VARCHAR, grantee VARCHAR, specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR,
    routine_catalog VARCHAR, routine_schema VARCHAR, routine_name VARCHAR, privilege_type VARCHAR, is_grantable
    VARCHAR
);
CREATE OR REPLACE TABLE infs.role_udt_grants (
    grantor VARCHAR, grantee VARCHAR, udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, privilege_type
    VARCHAR, is_grantable VARCHAR
);
CREATE OR REPLACE TABLE infs.role_usage_grants (
    grantor VARCHAR, grantee VARCHAR, object_catalog VARCHAR, object_schema VARCHAR, object_name VARCHAR,
    object_type VARCHAR, privilege_type VARCHAR, is_grantable VARCHAR
);
CREATE OR REPLACE TABLE infs.routine_column_usage (
    specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR, routine_catalog VARCHAR,
    routine_schema VARCHAR, routine_name VARCHAR, table_catalog VARCHAR, table_schema VARCHAR, table_name
    VARCHAR, column_name VARCHAR
);
CREATE OR REPLACE TABLE infs.routine_privileges (
    grantor VARCHAR, grantee VARCHAR, specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR,
    routine_catalog VARCHAR, routine_schema VARCHAR, routine_name VARCHAR, privilege_type VARCHAR, is_grantable
    VARCHAR
);
CREATE OR REPLACE TABLE infs.routine_routine_usage (
    specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR, routine_catalog VARCHAR,
    routine_schema VARCHAR, routine_name VARCHAR
);
CREATE OR REPLACE TABLE infs.routine_sequence_usage (
    specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR, routine_catalog VARCHAR,
    routine_schema VARCHAR, routine_name VARCHAR, sequence_catalog VARCHAR, sequence_schema VARCHAR,
    sequence_name VARCHAR
);
CREATE OR REPLACE TABLE infs.routine_table_usage (
    specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR, routine_catalog VARCHAR,
    routine_schema VARCHAR, routine_name VARCHAR, table_catalog VARCHAR, table_schema VARCHAR, table_name
    VARCHAR
);
-- The view `routines` has more.
CREATE OR REPLACE TABLE infs._routines (
    specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR, routine_catalog VARCHAR,
    routine_schema VARCHAR, routine_name VARCHAR, routine_type VARCHAR, module_catalog VARCHAR, module_schema
    VARCHAR, module_name VARCHAR, udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, data_type VARCHAR,
    character_maximum_length INTEGER, character_octet_length INTEGER, character_set_catalog VARCHAR,
    character_set_schema VARCHAR, character_set_name VARCHAR, collation_catalog VARCHAR, collation_schema
    VARCHAR, collation_name VARCHAR, numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale
    INTEGER, datetime_precision INTEGER, interval_type VARCHAR, interval_precision INTEGER, type_udt_catalog
    VARCHAR, type_udt_schema VARCHAR, type_udt_name VARCHAR, scope_catalog VARCHAR, scope_schema VARCHAR,
    scope_name VARCHAR, maximum_cardinality INTEGER, dtd_identifier VARCHAR, routine_body VARCHAR,
    routine_definition VARCHAR, external_name VARCHAR, external_language VARCHAR, parameter_style VARCHAR,
    is_deterministic VARCHAR, sql_data_access VARCHAR, is_null_call VARCHAR, sql_path VARCHAR,
    schema_level_routine VARCHAR, max_dynamic_result_sets INTEGER, is_user_defined_cast VARCHAR,
    is_implicitly_invocable VARCHAR, security_type VARCHAR, to_sql_specific_catalog VARCHAR,
    to_sql_specific_schema VARCHAR, to_sql_specific_name VARCHAR, as_locator VARCHAR, created TIMESTAMPTZ,
    last_altered TIMESTAMPTZ, new_savepoint_level VARCHAR, is_udt_dependent VARCHAR, result_cast_from_data_type
    VARCHAR, result_cast_as_locator VARCHAR, result_cast_char_max_length INTEGER, result_cast_char_octet_length
    INTEGER, result_cast_char_set_catalog VARCHAR, result_cast_char_set_schema VARCHAR,
    result_cast_char_set_name VARCHAR, result_cast_collation_catalog VARCHAR, result_cast_collation_schema
    VARCHAR, result_cast_collation_name VARCHAR, result_cast_numeric_precision INTEGER,
    result_cast_numeric_precision_radix INTEGER, result_cast_numeric_scale INTEGER,
    result_cast_datetime_precision INTEGER, result_cast_interval_type VARCHAR, result_cast_interval_precision
    INTEGER, result_cast_type_udt_catalog VARCHAR, result_cast_type_udt_schema VARCHAR,
    result_cast_type_udt_name VARCHAR, result_cast_scope_catalog VARCHAR, result_cast_scope_schema VARCHAR,
    result_cast_scope_name VARCHAR, result_cast_maximum_cardinality INTEGER, result_cast_dtd_identifier VARCHAR
);
CREATE OR REPLACE TABLE infs.sql_features (
    feature_id VARCHAR, feature_name VARCHAR, sub_feature_id VARCHAR, sub_feature_name VARCHAR, is_supported
    VARCHAR, is_verified_by VARCHAR, comments VARCHAR
);
CREATE OR REPLACE TABLE infs.sql_implementation_info (
    implementation_info_id VARCHAR, implementation_info_name VARCHAR, integer_value INTEGER, character_value
    VARCHAR, comments VARCHAR
);
CREATE OR REPLACE TABLE infs.sql_parts (
    feature_id VARCHAR, feature_name VARCHAR, is_supported VARCHAR, is_verified_by VARCHAR, comments VARCHAR
);
CREATE OR REPLACE TABLE infs.sql_sizing (
    sizing_id INTEGER, sizing_name VARCHAR, supported_value INTEGER, comments VARCHAR
);
CREATE OR REPLACE TABLE infs.transforms (
    udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, specific_catalog VARCHAR, specific_schema
    VARCHAR, specific_name VARCHAR, group_name VARCHAR, transform_type VARCHAR
);
CREATE OR REPLACE TABLE infs.triggered_update_columns (
    trigger_catalog VARCHAR, trigger_schema VARCHAR, trigger_name VARCHAR, event_object_catalog VARCHAR,
    event_object_schema VARCHAR, event_object_table VARCHAR, event_object_column VARCHAR
);
CREATE OR REPLACE TABLE infs.triggers (
    trigger_catalog VARCHAR, trigger_schema VARCHAR, trigger_name VARCHAR, event_manipulation VARCHAR,
    event_object_catalog VARCHAR, event_object_schema VARCHAR, event_object_table VARCHAR, action_order INTEGER,
    action_condition VARCHAR, action_statement VARCHAR, action_orientation VARCHAR, action_timing VARCHAR,
    action_reference_old_table VARCHAR, action_reference_new_table VARCHAR, action_reference_old_row VARCHAR,
    action_reference_new_row VARCHAR, created TIMESTAMPTZ
);
CREATE OR REPLACE TABLE infs.udt_privileges (
    grantor VARCHAR, grantee VARCHAR, udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, privilege_type
    VARCHAR, is_grantable VARCHAR
);
CREATE OR REPLACE TABLE infs.usage_privileges (
    grantor VARCHAR, grantee VARCHAR, object_catalog VARCHAR, object_schema VARCHAR, object_name VARCHAR,
    object_type VARCHAR, privilege_type VARCHAR, is_grantable VARCHAR
);
CREATE OR REPLACE TABLE infs.user_defined_types (
    user_defined_type_catalog VARCHAR, user_defined_type_schema VARCHAR, user_defined_type_name VARCHAR,
    user_defined_type_category VARCHAR, is_instantiable VARCHAR, is_final VARCHAR, ordering_form VARCHAR,
    ordering_category VARCHAR, ordering_routine_catalog VARCHAR, ordering_routine_schema VARCHAR,
    ordering_routine_name VARCHAR, reference_type VARCHAR, data_type VARCHAR, character_maximum_length INTEGER,
    character_octet_length INTEGER, character_set_catalog VARCHAR, character_set_schema VARCHAR,
    character_set_name VARCHAR, collation_catalog VARCHAR, collation_schema VARCHAR, collation_name VARCHAR,
    numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale INTEGER, datetime_precision
    INTEGER, interval_type VARCHAR, interval_precision INTEGER, source_dtd_identifier VARCHAR,
    ref_dtd_identifier VARCHAR
);
CREATE OR REPLACE TABLE infs.user_mapping_options (
    authorization_identifier VARCHAR, foreign_server_catalog VARCHAR, foreign_server_name VARCHAR, option_name
    VARCHAR, option_value VARCHAR
);
CREATE OR REPLACE TABLE infs.user_mappings (
    authorization_identifier VARCHAR, foreign_server_catalog VARCHAR, foreign_server_name VARCHAR
);
CREATE OR REPLACE TABLE infs.view_column_usage (
    view_catalog VARCHAR, view_schema VARCHAR, view_name VARCHAR, table_catalog VARCHAR, table_schema VARCHAR,
    table_name VARCHAR, column_name VARCHAR
);
CREATE OR REPLACE TABLE infs.view_routine_usage (
    table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, specific_catalog VARCHAR, specific_schema
    VARCHAR, specific_name VARCHAR
);
