//! Targets for text parsers, compared with independent implementations of the same format.

use std::sync::LazyLock;

use bigdecimal::BigDecimal;
use billing_auth::JwtSigner;
use billing_domain::access::TokenClaims;
use billing_domain::calendar::{Timestamp, parse_date};
use billing_domain::decimal::Digits;
use billing_domain::format::{Expression, FormatMapping, MappedColumns, Naming, ReportMapping};
use billing_domain::ports::{EventMapper as _, IdSource as _, TokenSigner as _};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ApiKeyRef, OrganizationId};
use billing_formats::RhaiMapper;
use billing_import::{FileKind, ReadOptions, UsageFile};
use billing_testkit::{CountingIds, fixtures};

/// Checks that another parser accepts the same JSON, and that a written value is read back unchanged.
pub(crate) fn json(bytes: &[u8]) {
    let Ok(value) = billing_json::read(bytes) else { return };
    assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_ok(), "{value} is not JSON");
    let again = billing_json::read(value.to_string().as_bytes());
    assert_eq!(again.as_ref(), Ok(&value), "after it is written");
}

/// Checks that an accepted number equals the input to the last digit.
pub(crate) fn decimal(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let narrow = Digits { integer: 6, fraction: 2 }.parse(text).ok();
    for value in [narrow, Quantity::parse(text).ok().map(Quantity::as_decimal)].into_iter().flatten() {
        let written: BigDecimal = text.parse().unwrap_or_else(|error| panic!("{text} is not a number: {error}"));
        let taken: BigDecimal = value.to_string().parse().expect("the digits of a decimal");
        assert_eq!(taken, written, "{text} was read as {value}");
    }
    if let Ok(rounded) = Quantity::parse_reported(text) {
        let strict = Quantity::parse(&rounded.as_decimal().to_string());
        assert_eq!(strict, Ok(rounded), "{text} was rounded to {rounded:?}");
    }
}

/// Checks that an accepted instant or date is read back unchanged after it is written.
pub(crate) fn timestamp(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(at) = Timestamp::parse(text) {
        assert!(Timestamp::MIN <= at && at <= Timestamp::MAX, "{text} was read as {at}");
        assert_eq!(Timestamp::parse(&at.to_string()), Ok(at), "{text} was read as {at}");
        assert_eq!(Timestamp::from_micros(at.as_micros()), Ok(at), "{text} was read as {at}");
    }
    if let Ok(date) = parse_date(text) {
        assert_eq!(date.to_string(), text);
    }
}

/// Checks that only the signed token is accepted, and no changed token.
pub(crate) fn token(bytes: &[u8]) {
    struct Signed {
        signer: JwtSigner,
        claims: TokenClaims,
        token: String,
    }
    static SIGNED: LazyLock<Signed> = LazyLock::new(|| {
        let ids = CountingIds::new();
        let signer = JwtSigner::new(&[fixtures::signing_secret(&ids)], "billing", "billing").expect("a signer");
        let issued_at = Timestamp::parse("2026-01-20T12:00:00Z").expect("an instant");
        let claims = TokenClaims {
            api_key_ref: ApiKeyRef::from_uuid(ids.new_id()),
            organization: OrganizationId::from_uuid(ids.new_id()),
            token_id: ids.new_id(),
            issued_at,
            expires_at: issued_at.plus_seconds(3600),
        };
        let token = signer.sign(&claims).expect("a token");
        Signed { signer, claims, token }
    });
    let Ok(text) = str::from_utf8(bytes) else { return };
    let now = SIGNED.claims.issued_at.plus_seconds(60);
    // The input can contain the real token, so that the fuzzer also reaches the code after the signature check.
    let mended = text.replace("TOKEN", &SIGNED.token);
    for tried in [text, mended.as_str()] {
        if let Ok(claims) = SIGNED.signer.verify(tried, now) {
            assert_eq!((tried, claims.token_id), (SIGNED.token.as_str(), SIGNED.claims.token_id), "a changed token was accepted");
        }
    }
}

/// Maps an event by two expressions, one per line. Parsing and mapping must terminate and be deterministic.
pub(crate) fn format(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut lines = text.splitn(3, '\n');
    let (Some(quantity), Some(column), Some(event)) = (lines.next(), lines.next(), lines.next()) else { return };
    let constant = |text: &str| Expression::parse(text).expect("an expression");
    let (Ok(quantity), Ok(column)) = (Expression::parse(quantity), Expression::parse(column)) else { return };
    let mapping = FormatMapping {
        timestamp: constant(r#""2026-01-01T00:00:00Z""#),
        customer: Naming::Ref(constant(r#""acme""#)),
        usage_product: Naming::Ref(constant(r#""calls""#)),
        quantity,
        report_data: ReportMapping::Columns(MappedColumns::new(vec![("x".to_owned(), column)]).expect("a valid key")),
        currency: None,
        entity_ref: None,
        idempotency_key: None,
        skip_if: None,
        for_each: None,
    };
    let mapper = RhaiMapper::new();
    let can_be_read = mapper.check(&mapping).is_ok();
    let mapped = mapper.map(&mapping, event);
    assert!(can_be_read || mapped.is_err(), "an invalid format was mapped");
    assert_eq!(mapped, RhaiMapper::new().map(&mapping, event), "a second mapping");
}

/// Reads a file of the kind that the first byte selects, to its end or its first unreadable line. Line numbers must ascend.
pub(crate) fn file(bytes: &[u8]) {
    let Some((kind, content)) = bytes.split_first() else { return };
    let kind = match kind % 3 {
        0 => FileKind::Csv,
        1 => FileKind::Ndjson,
        _ => FileKind::Json,
    };
    let Ok(mut file) = UsageFile::open_columns(content, kind, ReadOptions::default()) else { return };
    let mut last = 0;
    while let Ok(Some(line)) = file.next_line() {
        assert!(line.number > last, "line {} after line {last}", line.number);
        last = line.number;
        if let Ok(event) = line.event {
            assert!(billing_json::read(event.event.as_bytes()).is_ok(), "{} is not JSON", event.event);
        }
    }
}
