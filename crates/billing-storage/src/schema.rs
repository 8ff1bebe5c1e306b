//! The tables that the code uses. The columns match the migrations on both databases.

use billing_domain::catalog::{PricingContent, UsageProductProfile};
use billing_domain::party::bank::BankAccountProfile;
use billing_domain::party::{CustomerProfile, EntityProfile};
use billing_domain::ports::StoreResult;
use diesel::sql_types::{Bool, Integer, Nullable, Text};

use crate::column_values::{ColumnType, ColumnValue, Columns, editable_tables};
use crate::nested_rows::NestedColumn;
use crate::row::Row;
use crate::sql_types::{Dec, Json};

macro_rules! tables {
    ($($name:ident ($($key:ident),+) { $($column:ident -> $type:ty,)+ })+) => {
        $(diesel::table! {
            use diesel::sql_types::*;
            use crate::sql_types::{Day, Dec, Id, Json, Ts};

            $name ($($key),+) {
                $($column -> $type,)+
            }
        })+
    };
}

editable_tables! {
    /// The editable columns of an entity.
    entities (organization_id, entity_ref) { organization_id -> Id, entity_ref -> Text }
        EntityColumns of EntityProfile {
            name -> Text,
            legal_name -> Nullable<Text>,
            number_prefix -> Text,
            time_zone -> Text,
            currency -> Nullable<Text>,
            address -> Nullable<Json>,
            tax_id -> Nullable<Text>,
            net_terms -> Nullable<Text>,
            grace_hours -> Integer,
            payment -> Json,
            legal -> Nullable<Json>,
            taxes -> Nullable<Json>,
            paper -> Nullable<Json>,
            credit_unit -> Nullable<Json>,
        }
    /// The editable columns of a customer.
    customers (customer_id) { customer_id -> Id, organization_id -> Id, customer_ref -> Text, stamp -> Id, watched -> Bool }
        CustomerColumns of CustomerProfile {
            name -> Text,
            legal_name -> Nullable<Text>,
            email -> Nullable<Text>,
            tax_id -> Nullable<Text>,
            billing_address -> Nullable<Json>,
            currency -> Nullable<Text>,
            taxes -> Nullable<Json>,
            entity_ref -> Nullable<Text>,
            net_terms -> Nullable<Text>,
            payment -> Json,
            apply_balance -> Bool,
            legal -> Nullable<Json>,
            buyer_reference -> Nullable<Text>,
            e_invoice_profile -> Nullable<Text>,
            metadata -> Nullable<Json>,
        }
    /// The editable columns of a usage product.
    usage_products (organization_id, usage_product_ref) { organization_id -> Id, usage_product_ref -> Text }
        UsageProductColumns of UsageProductProfile {
            name -> Text,
            unit -> Nullable<Text>,
            unit_code -> Text,
            aggregation -> Text,
            unique_by -> Nullable<Text>,
        }
    /// The editable columns of a pricing.
    pricings (organization_id, pricing_ref) { organization_id -> Id, pricing_ref -> Text }
        PricingColumns of PricingContent {
            name -> Text,
            currency -> Text,
            minimum_fee -> Nullable<Dec>,
            line_items -> Json,
        }
    /// The editable columns of a bank account.
    bank_accounts (organization_id, account_ref) { organization_id -> Id, account_ref -> Text }
        BankAccountColumns of BankAccountProfile {
            account_name -> Nullable<Text>,
            iban -> Nullable<Text>,
            account_number -> Nullable<Text>,
            routing_number -> Nullable<Text>,
            bic -> Nullable<Text>,
            bank_name -> Nullable<Text>,
        }
}

tables! {
    organizations (organization_id) {
        organization_id -> Id,
        name -> Text,
        default_entity_ref -> Nullable<Text>,
        created_at -> Ts,
        last_verification -> Nullable<Text>,
        catalog_stamp -> Id,
    }
    administrators (admin_id) {
        admin_id -> Id,
        organization_id -> Id,
        email -> Text,
        password_hash -> Text,
        created_at -> Ts,
        disabled_at -> Nullable<Ts>,
        role -> Text,
        one_time_until -> Nullable<Ts>,
        second_factor_secret -> Nullable<Binary>,
        second_factor_since -> Nullable<Ts>,
        second_factor_step -> Nullable<BigInt>,
        recovery_digests -> Nullable<Binary>,
        failed_codes -> BigInt,
        known_addresses -> Binary,
        updated_at -> Ts,
    }
    api_keys (api_key_id) {
        api_key_id -> Id,
        organization_id -> Id,
        api_key -> Text,
        password_digest -> Binary,
        name -> Nullable<Text>,
        scopes -> Text,
        created_at -> Ts,
        last_used_at -> Nullable<Ts>,
        expires_at -> Nullable<Ts>,
        successor_id -> Nullable<Id>,
        updated_at -> Ts,
    }
    sessions (digest) {
        digest -> Binary,
        session_id -> Id,
        admin_id -> Id,
        organization_id -> Id,
        created_at -> Ts,
        last_seen_at -> Ts,
        confirmed_at -> Ts,
        user_agent -> Nullable<Text>,
    }
    revoked_tokens (token_id) {
        token_id -> Id,
        expires_at -> Ts,
    }
    signing_secrets (kid) {
        kid -> Text,
        purpose -> Text,
        secret -> Binary,
        created_at -> Ts,
    }
    exchange_rates (organization_id, from_currency, to_currency, day) {
        organization_id -> Id,
        from_currency -> Text,
        to_currency -> Text,
        day -> Day,
        rate -> Dec,
        created_at -> Ts,
        updated_at -> Ts,
    }
    search_words (organization_id, kind, reference, word) {
        organization_id -> Id,
        kind -> Text,
        reference -> Text,
        word -> Text,
    }
    logos (organization_id, sha256) {
        organization_id -> Id,
        sha256 -> Binary,
        format -> Text,
        image -> Binary,
    }
    usage_formats (organization_id, format_ref) {
        organization_id -> Id,
        format_ref -> Text,
        name -> Text,
        version -> Integer,
        created_at -> Ts,
        updated_at -> Ts,
    }
    usage_format_versions (organization_id, format_ref, version) {
        organization_id -> Id,
        format_ref -> Text,
        version -> Integer,
        name -> Text,
        mapping -> Json,
        created_at -> Ts,
        created_by -> Text,
    }
    contracts (contract_id, customer_id) {
        contract_id -> Id,
        customer_id -> Id,
        organization_id -> Id,
        number -> BigInt,
        po_number -> Nullable<Text>,
        metadata -> Nullable<Json>,
        version -> Integer,
        created_at -> Ts,
        updated_at -> Ts,
        cancelled_at -> Nullable<Ts>,
        next_due_at -> Nullable<Ts>,
        documents_opened -> Integer,
        first_day -> Nullable<Day>,
        last_day -> Nullable<Day>,
        entity_ref -> Nullable<Text>,
        terms_id -> Id,
        stamp -> Id,
        watched -> Bool,
        notification_count -> BigInt,
        failures -> Nullable<Json>,
        failure_told_at -> Nullable<Ts>,
    }
    contract_versions (contract_id, customer_id, version) {
        contract_id -> Id,
        customer_id -> Id,
        version -> Integer,
        created_at -> Ts,
        created_by -> Nullable<Text>,
        po_number -> Nullable<Text>,
    }
    contract_products (contract_id, customer_id, product_no, version, in_force_from) {
        contract_id -> Id,
        customer_id -> Id,
        product_no -> Integer,
        in_force_from -> Day,
        version -> Integer,
        end_reason -> Nullable<Text>,
        terms -> Nullable<Json>,
    }
    contract_usage_products (customer_id, usage_product_ref, contract_id, product_no) {
        customer_id -> Id,
        usage_product_ref -> Text,
        contract_id -> Id,
        product_no -> Integer,
    }
    document_parts (document_id, customer_id, product_no) {
        document_id -> Id,
        customer_id -> Id,
        product_no -> Integer,
        position -> Integer,
        contract_id -> Id,
        period_start -> Day,
        slot -> Nullable<Text>,
        active -> Bool,
    }
    document_lines (document_id, customer_id, ordinal) {
        document_id -> Id,
        customer_id -> Id,
        ordinal -> Integer,
        contract_id -> Id,
        product_no -> Integer,
        line_item_id -> Nullable<Text>,
        bill_with -> Text,
        billed_period_start -> Day,
        discount_rate -> Dec,
        tax_rate -> Dec,
        tax_basis -> Text,
        has_default_tax -> Bool,
        usage_product_ref -> Nullable<Text>,
        service_period_start -> Day,
        service_period_end -> Day,
        quantity -> Nullable<Dec>,
        event_changes -> BigInt,
        amount_minor -> BigInt,
        frozen -> Bool,
    }
    family_sums (customer_id, family_document_id, product_no, discount_rate, tax_rate, tax_basis) {
        customer_id -> Id,
        family_document_id -> Id,
        organization_id -> Id,
        product_no -> Integer,
        discount_rate -> Text,
        tax_rate -> Text,
        tax_basis -> Text,
        base_minor -> BigInt,
        amount_minor -> BigInt,
    }
    issued_documents (document_id, customer_id) {
        document_id -> Id,
        customer_id -> Id,
        organization_id -> Id,
        entity_ref -> Text,
        kind -> Text,
        chain_position -> BigInt,
        previous_hash -> Binary,
        content_hash -> Binary,
        content -> Text,
        issued_at -> Ts,
    }
    document_files (document_id, customer_id, file) {
        document_id -> Id,
        customer_id -> Id,
        file -> Text,
        bytes -> Binary,
        sha256 -> Binary,
        maker -> Text,
        made_at -> Ts,
    }
    payments (payment_id, customer_id) {
        payment_id -> Id,
        customer_id -> Id,
        document_id -> Nullable<Id>,
        amount_minor -> BigInt,
        paid_date -> Day,
        reference -> Nullable<Text>,
        metadata -> Nullable<Json>,
        recorded_at -> Ts,
        recorded_by -> Text,
        updated_at -> Ts,
        organization_id -> Id,
        entity_ref -> Text,
        currency -> Text,
        kind -> Text,
        of_document_id -> Nullable<Id>,
        of_payment_id -> Nullable<Id>,
        method -> Nullable<Text>,
        used_minor -> BigInt,
        unapplied_minor -> BigInt,
        reversed_on -> Nullable<Day>,
        reversal_reason -> Nullable<Text>,
        reversed_at -> Nullable<Ts>,
        reversed_by -> Nullable<Text>,
    }
    metadata (organization_id, kind, key, value, customer_id, subject_id) {
        organization_id -> Id,
        kind -> Text,
        key -> Text,
        value -> Text,
        customer_id -> Id,
        subject_id -> Id,
    }
    accounts (customer_id, entity_ref, currency) {
        customer_id -> Id,
        entity_ref -> Text,
        currency -> Text,
        organization_id -> Id,
        unapplied_minor -> BigInt,
        unapplied_high -> BigInt,
    }
    applications (application_id, customer_id) {
        application_id -> Id,
        customer_id -> Id,
        organization_id -> Id,
        entity_ref -> Text,
        currency -> Text,
        from_document_id -> Nullable<Id>,
        from_payment_id -> Nullable<Id>,
        to_document_id -> Id,
        amount_minor -> BigInt,
        applied_on -> Day,
        recorded_at -> Ts,
        recorded_by -> Text,
        undone_at -> Nullable<Ts>,
        undone_by -> Nullable<Text>,
    }
    limits (limit_id, customer_id) {
        limit_id -> Id,
        customer_id -> Id,
        organization_id -> Id,
        metric -> Text,
        entity_ref -> Nullable<Text>,
        currency -> Nullable<Text>,
        contract_id -> Nullable<Id>,
        product_no -> Nullable<Integer>,
        usage_product_ref -> Nullable<Text>,
        line_item_id -> Nullable<Text>,
        max -> Nullable<Dec>,
        thresholds -> Json,
        reached_in -> Nullable<Day>,
        reached -> Integer,
        max_reached_at -> Nullable<Dec>,
        notification_count -> BigInt,
        created_at -> Ts,
        updated_at -> Ts,
    }
    usage_holds (customer_id, hold_ref, entry_no) {
        customer_id -> Id,
        hold_ref -> Text,
        entry_no -> Integer,
        organization_id -> Id,
        contract_id -> Id,
        product_no -> Integer,
        period_start -> Day,
        usage_product_ref -> Text,
        line_item_id -> Text,
        quantity -> Dec,
        digest -> Binary,
        made_at -> Ts,
        expires_at -> Ts,
        ended_at -> Nullable<Ts>,
        event_id -> Nullable<Id>,
    }
    credit_grants (grant_id, customer_id) {
        grant_id -> Id,
        customer_id -> Id,
        organization_id -> Id,
        entity_ref -> Text,
        currency -> Text,
        amount_minor -> BigInt,
        drawn_minor -> BigInt,
        name -> Text,
        valid_from -> Nullable<Day>,
        valid_to -> Nullable<Day>,
        contract_id -> Nullable<Id>,
        source_document_id -> Nullable<Id>,
        source_net_minor -> Nullable<BigInt>,
        source_tax_rate -> Nullable<Text>,
        source_tax_basis -> Nullable<Text>,
        notification_count -> BigInt,
        created_at -> Ts,
        updated_at -> Ts,
    }
    credit_draws (document_id, customer_id, draw_no) {
        document_id -> Id,
        customer_id -> Id,
        draw_no -> Integer,
        organization_id -> Id,
        grant_id -> Id,
        tax_rate -> Text,
        tax_basis -> Text,
        amount_minor -> BigInt,
        recorded_at -> Ts,
    }
    write_offs (write_off_id, customer_id) {
        write_off_id -> Id,
        customer_id -> Id,
        organization_id -> Id,
        entity_ref -> Text,
        currency -> Text,
        document_id -> Id,
        amount_minor -> BigInt,
        written_off_on -> Day,
        reason -> Nullable<Text>,
        recorded_at -> Ts,
        recorded_by -> Text,
    }
    customer_refs (organization_id, customer_ref) {
        organization_id -> Id,
        customer_ref -> Text,
        customer_id -> Id,
    }
    number_series (organization_id, entity_ref, kind) {
        organization_id -> Id,
        entity_ref -> Text,
        kind -> Text,
        prefix -> Text,
        last -> BigInt,
        chain_length -> BigInt,
        chain_head -> Binary,
    }
    usage_totals (customer_id, contract_id, product_no, period_start, usage_product_ref, line_item_id) {
        customer_id -> Id,
        contract_id -> Id,
        product_no -> Integer,
        period_start -> Day,
        usage_product_ref -> Text,
        line_item_id -> Text,
        organization_id -> Id,
        sum -> Dec,
        events -> BigInt,
        max -> Nullable<Dec>,
        latest_at -> Nullable<Ts>,
        latest_service_date -> Nullable<Day>,
        latest_event_id -> Nullable<Id>,
        latest_quantity -> Nullable<Dec>,
        last_day -> Nullable<Day>,
        distinct_values -> Nullable<BigInt>,
    }
    usage_events (event_id, customer_id) {
        event_id -> Id,
        customer_id -> Id,
        contract_id -> Id,
        product_no -> Integer,
        usage_product_ref -> Text,
        service_start -> Day,
        service_end -> Day,
        document_id -> Id,
        occurred_at -> Ts,
        service_date -> Day,
        quantity -> Dec,
        report_data -> Nullable<Text>,
        validations -> Nullable<Json>,
        format_ref -> Nullable<Text>,
        format_version -> Nullable<Integer>,
        raw_event -> Nullable<Text>,
        recorded_at -> Ts,
        revision -> Integer,
        revised_at -> Ts,
        revised_by -> Text,
        deleted -> Bool,
        answered_document_id -> Nullable<Id>,
        first_contract_id -> Nullable<Id>,
        first_product_no -> Nullable<Integer>,
        unique_digest -> Nullable<Id>,
    }
    usage_event_revisions (event_id, customer_id, revision) {
        event_id -> Id,
        customer_id -> Id,
        contract_id -> Id,
        product_no -> Integer,
        usage_product_ref -> Text,
        service_start -> Day,
        service_end -> Day,
        document_id -> Id,
        occurred_at -> Ts,
        service_date -> Day,
        quantity -> Dec,
        report_data -> Nullable<Text>,
        validations -> Nullable<Json>,
        format_ref -> Nullable<Text>,
        format_version -> Nullable<Integer>,
        raw_event -> Nullable<Text>,
        recorded_at -> Ts,
        revision -> Integer,
        revised_at -> Ts,
        revised_by -> Text,
        deleted -> Bool,
        billed -> Bool,
    }
    charges (customer_id, charge_ref) {
        charge_ref -> Text,
        customer_id -> Id,
        organization_id -> Id,
        contract_id -> Id,
        product_no -> Integer,
        charged_on -> Day,
        name -> Text,
        quantity -> Dec,
        unit_price -> Dec,
        unit -> Nullable<Text>,
        currency -> Text,
        bill_with -> Text,
        discountable -> Bool,
        goods -> Bool,
        note -> Nullable<Text>,
        reason -> Nullable<Text>,
        recorded_at -> Ts,
        revision -> Integer,
        revised_at -> Ts,
        revised_by -> Text,
        deleted -> Bool,
    }
    charge_revisions (customer_id, charge_ref, revision) {
        charge_ref -> Text,
        customer_id -> Id,
        revision -> Integer,
        organization_id -> Id,
        contract_id -> Id,
        product_no -> Integer,
        charged_on -> Day,
        name -> Text,
        quantity -> Dec,
        unit_price -> Dec,
        unit -> Nullable<Text>,
        currency -> Text,
        bill_with -> Text,
        discountable -> Bool,
        goods -> Bool,
        note -> Nullable<Text>,
        reason -> Nullable<Text>,
        recorded_at -> Ts,
        revised_at -> Ts,
        revised_by -> Text,
        deleted -> Bool,
    }
    usage_event_keys (customer_id, key_digest) {
        customer_id -> Id,
        key_digest -> Id,
        event_id -> Id,
        body_digest -> Id,
        answer -> Nullable<Text>,
    }
    replay_log (organization_id, path, idempotency_key) {
        organization_id -> Id,
        path -> Text,
        idempotency_key -> Text,
        body_hash -> Binary,
        answer -> Binary,
        kept_at -> Ts,
    }
    refused_usage (organization_id, day, code, customer_ref, usage_product_ref) {
        organization_id -> Id,
        day -> Day,
        code -> Text,
        customer_ref -> Text,
        usage_product_ref -> Text,
        count -> BigInt,
        first_at -> Ts,
        last_at -> Ts,
        example -> Text,
    }
    billing_runs (organization_id, run_id) {
        organization_id -> Id,
        run_id -> Id,
        actor -> Text,
        request_id -> Nullable<Text>,
        begun_at -> Ts,
        ended_at -> Nullable<Ts>,
        updated_at -> Ts,
        cut_short -> Bool,
        contracts -> BigInt,
        issued -> BigInt,
        voided -> BigInt,
        failed -> BigInt,
        documents -> Text,
        failures -> Text,
    }
    usage_imports (organization_id, import_id) {
        organization_id -> Id,
        import_id -> Id,
        file_name -> Nullable<Text>,
        bytes -> BigInt,
        sha256 -> Binary,
        actor -> Text,
        request_id -> Nullable<Text>,
        begun_at -> Ts,
        ended_at -> Nullable<Ts>,
        updated_at -> Ts,
        stopped_at_line -> Nullable<BigInt>,
        recorded -> BigInt,
        updated -> BigInt,
        already_there -> BigInt,
        refused -> BigInt,
        skipped -> BigInt,
        documents -> Text,
        more_documents -> BigInt,
        undone -> Nullable<Text>,
    }
    usage_import_events (organization_id, import_id, part_id) {
        organization_id -> Id,
        import_id -> Id,
        part_id -> Id,
        events -> Binary,
    }
    audit_log (audit_id, beside) {
        audit_id -> Id,
        organization_id -> Id,
        beside -> Id,
        at -> Ts,
        actor -> Text,
        action -> Text,
        subject -> Text,
        before -> Nullable<Text>,
        after -> Nullable<Text>,
        request_id -> Nullable<Text>,
    }
    notifications (customer_id, notification_id) {
        customer_id -> Id,
        notification_id -> Id,
        organization_id -> Id,
        subject -> Text,
        sequence -> BigInt,
        kind -> Text,
        body -> Text,
        created_at -> Ts,
        position -> Nullable<BigInt>,
    }
    notification_heads (organization_id) {
        organization_id -> Id,
        position -> BigInt,
        lease_by -> Nullable<Id>,
        lease_until -> Nullable<Ts>,
    }
    restores (epoch) {
        epoch -> BigInt,
        restored_to -> Ts,
    }
    sandbox (id) {
        id -> BigInt,
        now -> Ts,
    }
    notices (customer_id, subject, kind) {
        customer_id -> Id,
        subject -> Text,
        kind -> Text,
        organization_id -> Id,
        at -> Ts,
    }
    webhook_endpoints (organization_id, endpoint_id) {
        organization_id -> Id,
        endpoint_id -> Id,
        url -> Text,
        event_types -> Json,
        customer_refs -> Nullable<Json>,
        description -> Nullable<Text>,
        enabled -> Bool,
        disabled_reason -> Nullable<Text>,
        paused_until -> Nullable<Ts>,
        pauses -> Integer,
        failing_since -> Nullable<Ts>,
        failures -> BigInt,
        last_delivered_at -> Nullable<Ts>,
        notification_count -> BigInt,
        created_at -> Ts,
        updated_at -> Ts,
    }
    webhook_secrets (endpoint_id, kid) {
        endpoint_id -> Id,
        kid -> Text,
        secret -> Binary,
        created_at -> Ts,
        expires_at -> Nullable<Ts>,
    }
    webhook_deliveries (endpoint_id, notification_id) {
        endpoint_id -> Id,
        notification_id -> Id,
        organization_id -> Id,
        customer_id -> Id,
        position -> BigInt,
        state -> Text,
        attempt -> Integer,
        due_at -> Nullable<Ts>,
        lease_by -> Nullable<Id>,
        lease_until -> Nullable<Ts>,
        attempts -> Json,
        created_at -> Ts,
        updated_at -> Ts,
    }
}

/// Documents. The table has more columns than diesel accepts.
pub(crate) mod documents {
    use diesel::sql_types::{BigInt, Nullable, Text};

    use crate::more_columns::more_columns;
    use crate::sql_types::{Day, Json, Ts};

    pub(crate) use self::most::documents::*;

    mod most {
        tables! {
            documents (document_id, customer_id) {
                document_id -> Id,
                customer_id -> Id,
                organization_id -> Id,
                contract_id -> Id,
                entity_ref -> Text,
                kind -> Text,
                number_prefix -> Text,
                sequence -> BigInt,
                purpose -> Text,
                slot -> Nullable<Text>,
                number_in_contract -> Integer,
                currency -> Text,
                period_start -> Day,
                period_end -> Day,
                is_partial_period -> Bool,
                net_terms -> Text,
                payment -> Json,
                parent_document_id -> Nullable<Id>,
                replaces_document_id -> Nullable<Id>,
                created_at -> Ts,
                lifecycle -> Text,
                issue_date -> Nullable<Day>,
                due_date -> Nullable<Day>,
                total_minor -> Nullable<BigInt>,
                paid_minor -> BigInt,
                credits_minor -> BigInt,
                paid_date -> Nullable<Day>,
                family_document_id -> Id,
                converted_tax -> Nullable<Json>,
                used_minor -> BigInt,
                updated_at -> Ts,
                notification_count -> BigInt,
            }
        }
    }

    more_columns! {
        voided_at -> Nullable<Ts>,
        voided_on -> Nullable<Day>,
        discarded_content -> Nullable<Json>,
        amount_due_minor -> Nullable<BigInt>,
        unapplied_minor -> Nullable<BigInt>,
        po_number -> Nullable<Text>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(contracts, contract_usage_products, contract_products, customers);
diesel::allow_tables_to_appear_in_same_query!(documents, document_parts, document_lines, issued_documents, payments, write_offs);
diesel::allow_tables_to_appear_in_same_query!(document_files, issued_documents);
diesel::allow_tables_to_appear_in_same_query!(credit_grants, documents);
diesel::allow_tables_to_appear_in_same_query!(credit_grants, write_offs);
diesel::allow_tables_to_appear_in_same_query!(credit_draws, documents);
diesel::allow_tables_to_appear_in_same_query!(metadata, payments);
diesel::allow_tables_to_appear_in_same_query!(usage_formats, usage_format_versions);
diesel::allow_tables_to_appear_in_same_query!(documents, usage_events);
diesel::allow_tables_to_appear_in_same_query!(contracts, documents);
diesel::allow_tables_to_appear_in_same_query!(contracts, contract_versions);
diesel::allow_tables_to_appear_in_same_query!(contracts, organizations);
diesel::allow_tables_to_appear_in_same_query!(contract_usage_products, organizations);
diesel::allow_tables_to_appear_in_same_query!(contracts, usage_events);
diesel::allow_tables_to_appear_in_same_query!(api_keys, revoked_tokens);
diesel::allow_tables_to_appear_in_same_query!(customers, usage_products);
diesel::allow_tables_to_appear_in_same_query!(customers, usage_events);
diesel::allow_tables_to_appear_in_same_query!(customers, usage_event_revisions);
diesel::allow_tables_to_appear_in_same_query!(customers, usage_event_keys);
