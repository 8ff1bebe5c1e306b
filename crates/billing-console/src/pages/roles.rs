//! The page of a role. Its words are those of the operations, so that it follows from their permissions.

use crate::{RoleOperation, RolePage};
use billing_api::operation::{AuthRequirement, OperationSpec};
use billing_api::operations::OPERATIONS;
use billing_api::problem::Problem;
use billing_domain::access::{Permission, Role};

use super::page_builder::PageBuilder;

/// Renders the page of a role.
///
/// # Errors
/// Returns a problem for a word that is no role.
pub(super) fn page(word: &str) -> Result<PageBuilder, Problem> {
    let role = Role::parse(word).ok_or_else(Problem::unknown_route)?;
    let (permitted, others) = operations().partition(|(lowest, _)| *lowest <= role);
    let described = |operations: Vec<(Role, RoleOperation)>| operations.into_iter().map(|(_, operation)| operation).collect();
    let roles = Role::ALL.map(Role::as_str).to_vec();
    let page = RolePage { role: role.as_str(), roles, permitted: described(permitted), others: described(others) };
    Ok(PageBuilder::of(&format!("Role {}", role.as_str()), "account", crate::role(&page)))
}

/// Returns the operations that change data of the organization, by area, with the lowest role that may run each.
fn operations() -> impl Iterator<Item = (Role, RoleOperation)> {
    let mut operations: Vec<&OperationSpec> = OPERATIONS.iter().filter(|operation| operation.changes_state()).collect();
    operations.sort_by_key(|operation| operation.tag);
    operations.into_iter().filter_map(|operation| {
        let AuthRequirement::Permission(use_case) = operation.needs else { return None };
        let need = use_case.need();
        let role = Some(need.role()).filter(|_| need != Permission::Administrator)?;
        let summary = operation.does.first().copied().unwrap_or_default();
        // The first fact of the summary.
        let effect = summary.split([';', '.']).next().unwrap_or_default();
        Some((role, RoleOperation { id: operation.id, area: operation.tag, effect, role: role.as_str() }))
    })
}

#[cfg(test)]
mod tests {
    use billing_application::UseCase;

    use super::*;

    #[test]
    fn a_role_may_do_what_its_permissions_allow() {
        let lowest = |id: &str| operations().find(|(_, operation)| operation.id == id).map(|(role, _)| role);
        for use_case in [UseCase::IssueDocument, UseCase::CreateContract, UseCase::GenerateKey, UseCase::GetCustomer] {
            let role = Some(use_case.need().role());
            let operation = OPERATIONS.iter().find(|operation| operation.use_case().is_ok_and(|own| own == use_case));
            let operation = operation.expect("an operation");
            assert_eq!(lowest(operation.id), role.filter(|_| operation.changes_state()), "{}", operation.id);
        }
        assert_eq!(lowest("change_password"), None, "everybody changes the own account");
        assert!(operations().all(|(_, operation)| operation.effect.len() > 8 && !operation.effect.contains('`')));
    }
}
