//! How organizations share the lanes of a server. A lane is a thread that sends deliveries of one endpoint.

use std::collections::{BTreeMap, VecDeque};

use billing_domain::refs::{EndpointRef, OrganizationId};

/// The lanes of a server.
///
/// An organization never has more lanes than are free. So another organization finds as many lanes as the first one has, also if
/// all endpoints of the first one hang, and a third organization finds half of them.
#[derive(Clone, Debug)]
pub struct LaneShares {
    free: usize,
    /// The lanes of each organization that has one.
    taken: BTreeMap<OrganizationId, usize>,
    /// When each organization last took a lane, as a number that counts up.
    last_turns: BTreeMap<OrganizationId, u64>,
    turns: u64,
}

impl LaneShares {
    /// Creates lanes that are all free.
    pub const fn new(lanes: usize) -> Self {
        Self { free: lanes, taken: BTreeMap::new(), last_turns: BTreeMap::new(), turns: 0 }
    }

    /// Returns whether no lane is free.
    pub const fn is_exhausted(&self) -> bool {
        self.free == 0
    }

    /// Returns the number of lanes that an organization may take now. The last free lane goes to one that has none.
    pub fn available_to(&self, organization: OrganizationId) -> usize {
        let taken = self.taken_by(organization);
        let share = self.free.saturating_sub(taken) / 2;
        if taken == 0 { share.max(self.free.min(1)) } else { share }
    }

    /// Takes lanes for an organization, at most as many as are free.
    pub fn take(&mut self, organization: OrganizationId, lanes: usize) {
        let lanes = lanes.min(self.free);
        self.free -= lanes;
        *self.taken.entry(organization).or_default() += lanes;
        self.turns += 1;
        self.last_turns.insert(organization, self.turns);
    }

    /// Returns a lane of an organization.
    pub fn release(&mut self, organization: OrganizationId) {
        if let Some(taken) = self.taken.get_mut(&organization) {
            self.free += 1;
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&organization);
            }
        }
    }

    /// Orders endpoints by turns of their organizations. The organization with the fewest lanes comes first, and among equals
    /// the one whose turn is longest ago. In a turn, an organization has one endpoint; its endpoints keep their order.
    pub fn in_turn(&self, endpoints: Vec<(OrganizationId, EndpointRef)>) -> Vec<(OrganizationId, EndpointRef)> {
        let count = endpoints.len();
        let mut of_organizations: BTreeMap<OrganizationId, VecDeque<EndpointRef>> = BTreeMap::new();
        for (organization, endpoint_ref) in endpoints {
            of_organizations.entry(organization).or_default().push_back(endpoint_ref);
        }
        let mut organizations: Vec<(OrganizationId, VecDeque<EndpointRef>)> = of_organizations.into_iter().collect();
        let rank = |organization: &OrganizationId| {
            (self.taken_by(*organization), self.last_turns.get(organization).copied().unwrap_or(0))
        };
        organizations.sort_by_key(|(organization, _)| rank(organization));
        let mut ordered = Vec::with_capacity(count);
        while ordered.len() < count {
            for (organization, endpoints) in &mut organizations {
                ordered.extend(endpoints.pop_front().map(|endpoint_ref| (*organization, endpoint_ref)));
            }
        }
        ordered
    }

    fn taken_by(&self, organization: OrganizationId) -> usize {
        self.taken.get(&organization).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn organization(n: u128) -> OrganizationId {
        OrganizationId::from_uuid(Uuid::from_u128(n))
    }

    fn endpoint(n: u128) -> EndpointRef {
        EndpointRef::from_uuid(Uuid::from_u128(n))
    }

    /// Takes lanes until the organization may take no more, and returns their number.
    fn take_all(lanes: &mut LaneShares, n: u128) -> usize {
        let mut taken = 0;
        loop {
            let available = lanes.available_to(organization(n)).min(4);
            if available == 0 {
                return taken;
            }
            lanes.take(organization(n), available);
            taken += available;
        }
    }

    #[test]
    fn an_organization_never_has_more_lanes_than_it_leaves() {
        let mut lanes = LaneShares::new(128);
        let taken: Vec<usize> = (1..=9).map(|n| take_all(&mut lanes, n)).collect();
        assert_eq!(taken, [64, 32, 16, 8, 4, 2, 1, 1, 0]);
        assert!(lanes.is_exhausted());
        // A lane that becomes free goes to an organization without one, and not to the one that had it.
        lanes.release(organization(1));
        assert_eq!((lanes.available_to(organization(1)), lanes.available_to(organization(9))), (0, 1));
        for _ in 0..63 {
            lanes.release(organization(1));
        }
        assert_eq!((take_all(&mut lanes, 1), lanes.available_to(organization(9))), (32, 16));
    }

    #[test]
    fn one_lane_serves_all_in_turn() {
        let mut lanes = LaneShares::new(1);
        let due =
            || (1..=3).flat_map(|n| [(organization(n), endpoint(10 * n)), (organization(n), endpoint(10 * n + 1))]).collect();
        let mut served = Vec::new();
        for _ in 0..6 {
            let (next, _) = lanes.in_turn(due())[0];
            assert_eq!(lanes.available_to(next), 1);
            lanes.take(next, 1);
            served.push(next);
            lanes.release(next);
        }
        assert_eq!(served, [1, 2, 3, 1, 2, 3].map(organization));
        lanes.release(organization(1));
        assert_eq!(lanes.available_to(organization(1)), 1, "nothing is released twice");
    }

    #[test]
    fn organizations_take_turns_and_the_one_with_the_fewest_lanes_begins() {
        let mut lanes = LaneShares::new(16);
        lanes.take(organization(1), 4);
        lanes.take(organization(3), 1);
        let many = (1..=3).map(|n| (organization(1), endpoint(n)));
        let due = many.chain([(organization(2), endpoint(4)), (organization(3), endpoint(5)), (organization(2), endpoint(6))]);
        let ordered: Vec<EndpointRef> = lanes.in_turn(due.collect()).into_iter().map(|(_, endpoint_ref)| endpoint_ref).collect();
        assert_eq!(ordered, [4, 5, 1, 6, 2, 3].map(endpoint));
    }
}
