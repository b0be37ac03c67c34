import type { Condition } from './meta.js';

/** The conditions that Holdfast writes: what each status and reason means, and whether somebody should do something. `npm run reference` writes docs/reference/conditions.md. */

interface ConditionRow {
  readonly type: string;
  readonly status: Condition['status'];
  readonly reasons: readonly string[];
  /** Somebody should do something about this status of this type: something does not work, or it may not work later. */
  readonly health?: 'wrong' | 'warning';
  readonly meaning: string;
}

// oxfmt-ignore
export const CLAIM_CONDITIONS = [
  { type: 'IPsAllocated', status: 'True', reasons: ['SuccessfulAllocation'], meaning: 'the addresses in `status.ips` are leased to this claim. If the message has `ProbeSkipped`, it names those that [were not probed](../how-to/layer-2-networks.md#hosts-that-holdfast-does-not-know) although the pool probes addresses' },
  { type: 'IPsAllocated', status: 'False', reasons: ['SubnetExhausted'], health: 'wrong', meaning: 'the pool is full; the message counts its addresses, or says why it allocates none. ipam retries as soon as an address is free, oldest claim first' },
  { type: 'IPsAllocated', status: 'False', reasons: ['IPAddressConflict'], health: 'wrong', meaning: 'the requested address is allocated, is kept for a claim that lost its lease, cools down, or [another host has it](../how-to/layer-2-networks.md#hosts-that-holdfast-does-not-know). The message names the owner, the time or the host, and says what to do, also if the [request was copied](../how-to/requested-addresses.md#clones-and-pools-of-vms). ipam retries when the address is free. Or two launchers of a VM that ran before its claim existed have different addresses: the claim gets those of the launcher that remains' },
  { type: 'IPsAllocated', status: 'False', reasons: ['AddressOutOfRange'], health: 'wrong', meaning: 'the VM requests an address that the pool never allocates: of another subnet, outside the ranges, excluded, or the gateway. The message names the addresses that it may request. Or the VM ran before its claim existed, with an address that the pool does not lease: add it to the pool, or restart the VM' },
  { type: 'IPsAllocated', status: 'False', reasons: ['PoolNotFound'], health: 'wrong', meaning: 'no pool serves the network, or its pool is invalid or in deletion; the message says which, and what to do' },
  { type: 'IPsAllocated', status: 'False', reasons: ['InvalidRequest'], health: 'wrong', meaning: 'the request for addresses is invalid, or a VM that ran before its claim existed has addresses that no claim can hold; the message names the value' },
  { type: 'IPsAllocated', status: 'False', reasons: ['InternalError'], health: 'wrong', meaning: "the API server rejects the lease, or the claim's status is invalid; the message says why" },
  { type: 'RequestHonoured', status: 'False', reasons: ['ClaimInUse', 'InvalidRequest', 'SubnetExhausted', 'IPAddressConflict', 'AddressOutOfRange', 'PoolNotFound', 'InternalError'], health: 'wrong', meaning: 'the claim keeps its addresses and cannot get those that it requests. The condition is removed with its cause' },
  { type: 'AddressDraining', status: 'True', reasons: ['ClaimInUse'], health: 'warning', meaning: 'an address is in a [draining range](../how-to/renumber.md) of the pool, and a pod uses it. The claim gets another address when the VM stops or restarts. Absent if no address is draining' },
  { type: 'AddressDraining', status: 'True', reasons: ['AddressRequested'], health: 'warning', meaning: 'the VM requests the draining address: change the request or remove it' },
  { type: 'AddressDraining', status: 'True', reasons: ['NoOtherAddress'], health: 'warning', meaning: 'the pool has no other address for the claim. The claim keeps its address, and ipam tries again' },
  { type: 'LaunchersVerified', status: 'False', reasons: ['KubeVirtNamespaceUnknown'], health: 'wrong', meaning: "no pod gets the claim's addresses until `kubevirtNamespace` is [correct](../how-to/troubleshoot.md#kubevirt-in-another-namespace). The claim keeps them. Absent otherwise" },
  { type: 'NetworkDataWritten', status: 'True', reasons: ['Written'], meaning: 'the Secret of the VM has the addresses of all its claims: [network data](../how-to/network-data.md). Absent if the VM does not ask for it' },
  { type: 'NetworkDataWritten', status: 'False', reasons: ['AddressesPending'], health: 'wrong', meaning: 'a claim of the VM has no addresses that are leased to it. The first launcher waits for the Secret; the data of an existing Secret is [removed](../how-to/network-data.md)' },
  { type: 'NetworkDataWritten', status: 'False', reasons: ['NoCloudInitVolume', 'SecretMismatch', 'SecretNameInvalid'], health: 'wrong', meaning: 'annotation and cloud-init volume of the VM do not name one Secret' },
  { type: 'NetworkDataWritten', status: 'False', reasons: ['SecretShared', 'SecretForeign', 'SecretQuota', 'SecretRejected'], health: 'wrong', meaning: 'an older VM or more than 16 VMs name the Secret, it exists and is not the network data of this VM, or a quota rejects it. `SecretRejected`: the message quotes the API server, or says that it has not answered' },
  { type: 'NetworkDataWritten', status: 'False', reasons: ['MACAddressMissing', 'MACAddressInvalid'], health: 'wrong', meaning: "interfaces that the message names have no MAC address in the VM's spec, or no valid one of their own" },
  { type: 'NetworkDataWritten', status: 'False', reasons: ['DefaultRouteInvalid', 'DefaultRouteNotExpressible', 'TooLarge'], health: 'wrong', meaning: 'the network data that the VM asks for cannot be written; the message says why' },
  { type: 'GuestConfigured', status: 'True', reasons: ['Configured'], meaning: 'the guest agent reports the addresses of the claim. Absent while the VM does not run, or its interface has `state: down`' },
  { type: 'GuestConfigured', status: 'False', reasons: ['OtherAddress', 'AddressMissing'], health: 'wrong', meaning: 'the guest has had another address, or none, for longer than `--guest-grace`; the message names it' },
  { type: 'GuestConfigured', status: 'Unknown', reasons: ['NoGuestAgent'], meaning: 'nobody reports the addresses of the guest: install the guest agent' },
  { type: 'GuestConfigured', status: 'Unknown', reasons: ['ShownFromLauncher'], meaning: "KubeVirt may show the address of the launcher in place of the guest's" },
  { type: 'GuestConfigured', status: 'Unknown', reasons: ['NoAddresses'], meaning: 'the claim has no address that can be compared' },
  { type: 'OwnerKindServed', status: 'False', reasons: ['KindNotServed'], health: 'wrong', meaning: 'the API server does not serve VirtualMachines or VirtualMachineInstances, so the claim [cannot be released](../how-to/troubleshoot.md#if-kubevirts-crds-are-removed). Absent otherwise' },
  { type: 'GuestServed', status: 'False', reasons: ['AddressNotLeased'], health: 'wrong', meaning: 'responders do not tell the guest an address of the claim, because its lease is lost; they serve the others. The condition `IPsAllocated` says why, and what to do' },
  { type: 'GuestServed', status: 'False', reasons: ['MACAddressConflict'], health: 'wrong', meaning: 'another running guest on the network, or on its layer-2 segment, [had the MAC address first](../concepts/how-the-address-gets-into-the-guest.md#who-has-a-mac-address), so responders do not answer this one: give it another `macAddress`' },
  { type: 'GuestServed', status: 'False', reasons: ['NoResponders'], health: 'wrong', meaning: 'nothing answers DHCP of the guest on a NAD without IPAM: its pool has no `spec.guest.dhcp`, or it gets no [responders](../how-to/layer-2-networks.md#answer-dhcp), as the events of the pool say. Absent if the VM asks for network data, or if `GuestConfigured` is True. Whether the pods of responders are ready is not in this condition: `kubectl holdfast doctor` says it' },
  { type: 'GuestServed', status: 'False', reasons: ['MACAddressUnknown'], health: 'wrong', meaning: "the MAC address of the guest's interface is not known or belongs to no interface: set `macAddress` in the VM's spec" },
] as const satisfies readonly ConditionRow[];

// oxfmt-ignore
export const POOL_CONDITIONS = [
  { type: 'Ready', status: 'True', reasons: ['Serving'], meaning: 'the pool serves' },
  { type: 'Ready', status: 'True', reasons: ['LeasedOutside'], meaning: 'it serves, but addresses outside of its spec are allocated, or reserved addresses are in no subnet or in another address space. The message names them. Such reservations have no effect and are not counted' },
  { type: 'Ready', status: 'False', reasons: ['InvalidSpec', 'Conflict', 'Deleting'], health: 'wrong', meaning: 'it allocates nothing; allocated addresses stay' },
  { type: 'Conflict', status: 'False', reasons: ['NoConflict'], meaning: 'no other pool serves its users' },
  { type: 'Conflict', status: 'True', reasons: ['OlderPool'], health: 'warning', meaning: 'an older pool serves the same users' },
  { type: 'Conflict', status: 'True', reasons: ['AdminPool'], health: 'warning', meaning: "of a derived pool: an administrator's pool, named in the message, serves its namespace and takes precedence. `Ready` is False if that pool serves all namespaces. Otherwise the derived pool still serves pods of other namespaces that name its NAD" },
  { type: 'NetworksAgree', status: 'True', reasons: ['NetworksAgree'], meaning: "of a derived pool: its NADs agree, and the pool's spec is equal to them" },
  { type: 'NetworksAgree', status: 'False', reasons: ['NetworksDisagree', 'NetworkInvalid', 'NetworkGone', 'LeasedOutside', 'NotPermitted'], health: 'wrong', meaning: "of a derived pool: its NADs differ from the pool's spec" },
  { type: 'NetworksAgree', status: 'False', reasons: ['MovePending'], health: 'wrong', meaning: 'of a derived pool: its NAD names another address space. The message names leases that delay the move, or says that a CNI ADD may still be in progress' },
  { type: 'NotPermitted', status: 'True', reasons: ['AdministratorRequired'], health: 'warning', meaning: 'of a derived pool: its NAD asks for an address space, a sticky time or published capacity that its namespace may not have; the message says what to do. The pool keeps what it has. With `--enforce-address-ownership`, a pool that has no right to its addresses is drained' },
  { type: 'OverlapsOnWire', status: 'True', reasons: ['OtherAddressSpace'], health: 'warning', meaning: 'another pool leases the same addresses on the same bridge, interface or SR-IOV resource and VLAN, in another address space: two interfaces may get one address. It serves anyway' },
  { type: 'UsedByOthers', status: 'True', reasons: ['NamespaceNotServed'], health: 'warning', meaning: 'derived pools of namespaces that this pool does not serve have some of its addresses. The message names them: see [who owns addresses](../how-to/pools.md#who-owns-addresses). Checked once a minute. Absent otherwise' },
  { type: 'Draining', status: 'True', reasons: ['AddressesInUse'], meaning: 'addresses of [draining ranges](../how-to/renumber.md) are in use; the message names some and counts all. Absent without such ranges' },
  { type: 'Draining', status: 'False', reasons: ['Drained'], meaning: 'no address of the draining ranges is in use: remove them from the pool' },
  { type: 'ProbingStopped', status: 'True', reasons: ['ProxyARP'], health: 'warning', meaning: 'one MAC address answers for many addresses of the pool: a proxy, or an attacker. New addresses are not probed until its quarantined addresses expire. Find that host. Absent while addresses are probed' },
  { type: 'ProbingStopped', status: 'True', reasons: ['QuarantineFull'], health: 'warning', meaning: 'the pool has as many quarantined addresses as it may have, so new addresses are not probed. Find the hosts that the leases name' },
  { type: 'DeletionBlocked', status: 'False', reasons: ['NotLeased'], meaning: 'nothing prevents its deletion' },
  { type: 'DeletionBlocked', status: 'True', reasons: ['Leased'], health: 'warning', meaning: 'it is in deletion and waits for the owners that the message names' },
  { type: 'DeletionBlocked', status: 'True', reasons: ['AddsUnderWay', 'MovePending'], health: 'warning', meaning: 'of a derived pool: it is in deletion, and stays up to 190 s until no CNI ADD that read it can be in progress' },
] as const satisfies readonly ConditionRow[];

type Row = (typeof CLAIM_CONDITIONS)[number] | (typeof POOL_CONDITIONS)[number];
export type ClaimCondition = (typeof CLAIM_CONDITIONS)[number]['type'];
export type PoolCondition = (typeof POOL_CONDITIONS)[number]['type'];
export type ReasonOf<Type extends Row['type']> = Extract<Row, { type: Type }>['reasons'][number];
export const PoolCondition = Object.fromEntries(POOL_CONDITIONS.map(({ type }) => [type, type])) as {
  readonly [Type in PoolCondition]: Type;
};

/** The types and statuses that say that somebody should do something. */
export const BAD_CLAIM_CONDITIONS = badOf(CLAIM_CONDITIONS);
export const BAD_POOL_CONDITIONS = badOf(POOL_CONDITIONS);

function badOf(
  rows: readonly ConditionRow[],
): (Pick<ConditionRow, 'type' | 'status'> & { health: 'wrong' | 'warning' })[] {
  const bad = rows.flatMap(({ type, status, health }) => (health === undefined ? [] : [{ type, status, health }]));
  return [...new Map(bad.map((each) => [each.type, each])).values()];
}
