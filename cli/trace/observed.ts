import type { AddressLease } from '../../api/address-lease.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import type { KubeObject } from '../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { Pod } from '../../api/pod.js';
import type { Event } from '../../kube/events.js';
import type { Read } from '../reader.js';

/** Everything that the story of a VM is made of. A user with the role `view` in the namespace can read all but leases, pools and agents. */
export interface ObservedVmTrace {
  readonly namespace: string;
  readonly name: string;
  readonly vm: Read<VirtualMachine>;
  readonly vmi: Read<VirtualMachineInstance>;
  /** Labels decide whether it is served. */
  readonly namespaceObject: Read<KubeObject>;
  /** The launchers of VMIs of this name. */
  readonly pods: Read<readonly Pod[]>;
  /** The claims of VMs of this name. */
  readonly claims: Read<readonly IPAMClaim[]>;
  /** Those of the VM, its VMI, its launchers and its claims. */
  readonly events: Read<readonly Event[]>;
  /** The NADs of its networks, by `namespace/name`. */
  readonly nads: ReadonlyMap<string, Read<NetworkAttachmentDefinition>>;
  /** The pools of the networks of the claims. */
  readonly pools: Read<readonly AddressPool[]>;
  /** The leases of the claims, those at the addresses that the claims show or wait for, and those that Secrets of the namespace lock. */
  readonly leases: Read<readonly AddressLease[]>;
  /** The agents on the nodes of the launchers, by node. */
  readonly agents: ReadonlyMap<string, Read<readonly Pod[]>>;
  /** The controller takes the gate PersistentIPs from the KubeVirt object, which the user may not read. */
  readonly isGateUnknown?: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}
