//! The permissions of all use cases. [`carry_out`](crate::carry_out) checks them before a use case runs, independently of the
//! interface.

use billing_domain::access::{Permission, Principal, Role, Scope};
use billing_domain::contract::Contract;
use billing_domain::party::PaymentDetails;
use billing_domain::refs::{OrganizationId, ProductNo};

use crate::error::{UseCaseError, UseCaseResult};

macro_rules! use_cases {
    ($($need:expr => $($use_case:ident),+;)+) => {
        /// An operation that a principal can request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum UseCase {
            $($(#[doc = concat!("`", stringify!($use_case), "`")] $use_case,)+)+
        }

        impl UseCase {
            /// Returns the permission that the use case requires.
            pub const fn need(self) -> Permission {
                match self {
                    $($(Self::$use_case)|+ => $need,)+
                }
            }
        }
    };
}

use_cases! {
    Permission::Administrator => GetOwnSession, ConfirmIdentity, ChangePassword, EnrollSecondFactor, ConfirmSecondFactor, RemoveSecondFactor, ListSessions,
        EndSessions;
    Permission::Owner => GenerateKey, ListKeys, RotateKey, DeleteKey, InviteAdministrator, ListAdministrators, EditAdministrator,
        ResetAdministrator;
    Permission::Scope(Scope::UsageWrite) => RecordUsage, UpdateEvent, DeleteEvent, UndoImport, CreateHold, ReleaseHold;
    // Finance creates and changes customers together with their contracts, but nothing else of the catalog.
    Permission::ScopeOrRole(Scope::CatalogWrite, Role::Finance) => CreateCustomer, EditCustomer;
    Permission::Scope(Scope::CatalogWrite) => CreateEntity, EditEntity, DeleteEntity, CreateUsageProduct, EditUsageProduct, CreatePricing, EditPricing, CreateFormat, EditFormat, CreateBankAccount, EditBankAccount, PutExchangeRate;
    // An endpoint receives what happens to all customers and documents.
    Permission::ScopeAndRead(Scope::CatalogWrite) => CreateWebhookEndpoint, EditWebhookEndpoint, DeleteWebhookEndpoint,
        RotateWebhookSecret, TestWebhookEndpoint, ReplayWebhookDeliveries;
    Permission::Scope(Scope::ContractsWrite) => CreateContract, EditContract, ChangeQuantity, CancelContract, ResumeContract,
        CreateLimit, EditLimit, DeleteLimit;
    Permission::Scope(Scope::DocumentsWrite) => IssueDocument, VoidDocument, RecordPayment, RecordDeposit, ReversePayment, Refund, Apply, Unapply,
        WriteOff, RunBilling, AdvanceClock, RecordCharge, EditCharge, DeleteCharge, CreateGrant, EditGrant, SellCredit;
    Permission::Scope(Scope::Read) => GetEvent, GetEventHistory, ListEvents, SummarizeUsage, ReportUsage, GetCustomer, ListCustomers,
        GetEntity, ListEntities, GetUsageProduct, ListUsageProducts, GetPricing, RatePricing, ListPricings, GetFormat, ListFormats, TestFormat,
        GetBankAccount, ListBankAccounts, ListExchangeRates,
        GetClock, GetContract, ListContracts, PreviewInvoices, GetDocument, ListDocuments, ListPayments, GetBalance,
        GetStatement, GetLimit, ListLimits, GetLimitsLeft, GetHold, ListHolds, GetGrant, ListGrants, ListDraws, GetCharge, ListCharges, Search, RunDry, ListAuditEntries,
        ListRefusedUsage, ListBillingRuns, GetBillingRun, ListImports, GetImport, GetVerification, ListNotifications,
        GetNotification, GetWebhookEndpoint, ListWebhookEndpoints, ListWebhookDeliveries;
}

impl UseCase {
    /// Returns whether an administrator must have entered the password recently. With these use cases, a stolen session could
    /// lock its owner out, give lasting access to the organization, or redirect its customers' payments. Changes of payment
    /// details require the same.
    pub const fn needs_confirmation(self) -> bool {
        matches!(
            self,
            Self::EnrollSecondFactor
                | Self::EndSessions
                | Self::GenerateKey
                | Self::RotateKey
                | Self::DeleteKey
                | Self::InviteAdministrator
                | Self::EditAdministrator
                | Self::ResetAdministrator
                | Self::CreateWebhookEndpoint
                | Self::EditWebhookEndpoint
                | Self::RotateWebhookSecret
                | Self::CreateBankAccount
                | Self::EditBankAccount
        )
    }

    /// Returns whether [`needs_confirmation`](Self::needs_confirmation) applies if the request changes payment details.
    pub const fn sets_payment_details(self) -> bool {
        matches!(
            self,
            Self::CreateCustomer
                | Self::EditCustomer
                | Self::CreateEntity
                | Self::EditEntity
                | Self::CreateContract
                | Self::EditContract
        )
    }
}

/// Returns the principal's organization if the principal may execute the use case.
///
/// # Errors
/// Returns [`UseCaseError::Forbidden`] or [`UseCaseError::InsufficientRole`] if the principal lacks the permission, or
/// [`UseCaseError::ConfirmationRequired`] if the administrator must enter the password again.
pub fn allow(principal: &Principal, use_case: UseCase) -> UseCaseResult<OrganizationId> {
    let need = use_case.need();
    match principal.role() {
        _ if principal.has(need) && use_case.needs_confirmation() => {
            require_confirmation(principal)?;
            Ok(principal.organization())
        }
        _ if principal.has(need) => Ok(principal.organization()),
        Some(role) => Err(UseCaseError::InsufficientRole { needed: need.role(), role }),
        None => Err(UseCaseError::Forbidden(need)),
    }
}

fn require_confirmation(principal: &Principal) -> UseCaseResult<()> {
    if principal.is_confirmed() { Ok(()) } else { Err(UseCaseError::ConfirmationRequired) }
}

/// Checks that the principal may set the payment details of an entity or a customer. A new entity or customer has none before.
///
/// # Errors
/// Returns [`UseCaseError::ConfirmationRequired`] if the details change and the administrator must enter the password again.
pub(crate) fn allow_payment_details(principal: &Principal, before: &PaymentDetails, after: &PaymentDetails) -> UseCaseResult<()> {
    if before == after { Ok(()) } else { require_confirmation(principal) }
}

/// Checks that the principal may set the payment details of a contract's products. A product without details of its own has
/// those of its customer or entity.
///
/// # Errors
/// Returns [`UseCaseError::ConfirmationRequired`] if a product gets other details and the administrator must enter the password
/// again.
pub(crate) fn allow_payment_details_of_contract(
    principal: &Principal,
    before: Option<&Contract>,
    after: &Contract,
) -> UseCaseResult<()> {
    let details_of = |no: ProductNo| -> Vec<&PaymentDetails> {
        let product = before.and_then(|contract| contract.product(no));
        product.map_or_else(|| vec![&NO_PAYMENT_DETAILS], |product| product.terms().map(|terms| &terms.payment).collect())
    };
    let is_changed = after.products.iter().any(|product| {
        let before = details_of(product.no);
        product.terms().any(|terms| !before.contains(&&terms.payment))
    });
    if is_changed { require_confirmation(principal) } else { Ok(()) }
}

const NO_PAYMENT_DETAILS: PaymentDetails = PaymentDetails { bank_transfer: None, online: None, crypto: None };
