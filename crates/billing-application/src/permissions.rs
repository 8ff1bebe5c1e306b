//! The permissions of all use cases. [`carry_out`](crate::carry_out) checks them before a use case runs, independently of the
//! interface.

use billing_domain::access::{Permission, Principal, Scope};
use billing_domain::refs::OrganizationId;

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
    Permission::Scope(Scope::UsageWrite) => RecordUsage, UpdateEvent, DeleteEvent, UndoImport;
    Permission::Scope(Scope::CatalogWrite) => CreateCustomer, EditCustomer, CreateEntity, EditEntity, CreateUsageProduct,
        EditUsageProduct, CreatePricing, EditPricing, CreateFormat, EditFormat, CreateBankAccount, EditBankAccount, PutExchangeRate;
    // An endpoint receives what happens to all customers and documents.
    Permission::ScopeAndRead(Scope::CatalogWrite) => CreateWebhookEndpoint, EditWebhookEndpoint, DeleteWebhookEndpoint,
        RotateWebhookSecret, TestWebhookEndpoint, ReplayWebhookDeliveries;
    Permission::Scope(Scope::ContractsWrite) => CreateContract, EditContract, ChangeQuantity, CancelContract, ResumeContract;
    Permission::Scope(Scope::DocumentsWrite) => IssueDocument, VoidDocument, RecordPayment, ReversePayment, Refund, Apply, Unapply,
        WriteOff, RunBilling, RecordCharge, EditCharge, DeleteCharge;
    Permission::Scope(Scope::Read) => GetEvent, GetEventHistory, ListEvents, SummarizeUsage, ReportUsage, GetCustomer, ListCustomers,
        GetEntity, ListEntities, GetUsageProduct, ListUsageProducts, GetPricing, RatePricing, ListPricings, GetFormat, ListFormats, TestFormat,
        GetBankAccount, ListBankAccounts, ListExchangeRates,
        GetContract, ListContracts, PreviewInvoices, GetDocument, ListDocuments, ListPayments, GetBalance,
        GetStatement, GetCharge, ListCharges, Search, RunDry, ListAuditEntries,
        ListRefusedUsage, ListBillingRuns, GetBillingRun, ListImports, GetImport, GetVerification, ListNotifications,
        GetNotification, GetWebhookEndpoint, ListWebhookEndpoints, ListWebhookDeliveries;
}

impl UseCase {
    /// Returns whether an administrator must have entered the password recently. With these use cases, a stolen session could
    /// lock its owner out or give lasting access to the organization.
    pub const fn needs_confirmation(self) -> bool {
        matches!(
            self,
            Self::EnrollSecondFactor
                | Self::GenerateKey
                | Self::RotateKey
                | Self::DeleteKey
                | Self::InviteAdministrator
                | Self::EditAdministrator
                | Self::ResetAdministrator
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
        _ if principal.has(need) && use_case.needs_confirmation() && !principal.is_confirmed() => {
            Err(UseCaseError::ConfirmationRequired)
        }
        _ if principal.has(need) => Ok(principal.organization()),
        Some(role) => Err(UseCaseError::InsufficientRole { needed: need.role(), role }),
        None => Err(UseCaseError::Forbidden(need)),
    }
}
