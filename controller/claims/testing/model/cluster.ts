import { type IPAMClaim, claimNadOf, claimOwnerOf, claimVmNetworkOf } from '../../../../api/ipam-claim.js';
import { type SecondaryNetwork, secondaryNetworks } from '../../../../api/kubevirt.js';
import { type KubeObject, controllerOf, isBeingDeleted, joinKey } from '../../../../api/meta.js';
import {
  CLAIM_FINALIZER,
  CLAIM_VM_NETWORK,
  LAST_APPLIED_ANNOTATION,
  VELERO_RESTORE_NAME,
  PERSISTENT_IPS_LABEL,
} from '../../../../api/names.js';
import { type Pod, controllingVmi } from '../../../../api/pod.js';
import { refersTo } from '../../plan/references.js';
import { ownerOfVmi } from '../../../../api/vm-claims.js';
import { NAMESPACE } from '../../../../test/objects/workload-objects.js';
import { ModelController } from './controller.js';
import { collectGarbage } from './garbage-collector.js';
import { KubeVirt, KUBEVIRT_STEPS } from './kubevirt.js';
import { elementsOf } from './launchers.js';
import { VM_KEY, createInitialObjects } from './operations.js';
import { type SelectionElement, networkOf } from './webhook.js';
import { KINDS, ClaimsWorld } from './world.js';

const MAX_ROUNDS = 400;

/** A model world with KubeVirt, the garbage collector and the controller, and the checks of what must hold in it. */
export class ClaimsModelCluster {
  readonly world = new ClaimsWorld();
  readonly kubevirt: KubeVirt;
  readonly controller: ModelController;
  readonly #violations: string[] = [];
  /** A late write may have created a second claim for an interface, and the controller has not acted yet. */
  #mayHaveDuplicates = false;

  constructor() {
    createInitialObjects(this.world);
    this.kubevirt = new KubeVirt(this.world);
    this.controller = new ModelController(this.world);
    this.world.onClaimRemoved = (claim) => this.#checkRemoval(claim);
    this.world.onClaimChanged = (before, after) => this.#checkOwner(before, after);
  }

  /** Runs everything that happens by itself until nothing changes any more. */
  async settle(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const before = this.world.version;
      this.controller.deliverAll();
      while (this.controller.queue.size > 0) await this.controller.syncNext();
      for (const step of KUBEVIRT_STEPS) this.kubevirt.steps[step]();
      collectGarbage(this.world);
      if (this.world.version !== before || this.controller.deliverAll()) continue;
      await this.#retry();
      if (this.world.version !== before) continue;
      this.#mayHaveDuplicates = false;
      return;
    }
    throw new Error(`it does not come to rest: ${this.describe()}`);
  }

  /** Throws if an invariant was violated. */
  check(): void {
    const [first] = this.#violations;
    if (first !== undefined) throw new Error(first);
    if (!this.#mayHaveDuplicates) this.#checkDuplicates();
  }

  /** Lets the oldest late write arrive. @returns whether there was one */
  arriveLate(): boolean {
    const write = this.controller.arriveLate();
    if (write?.method === 'POST') this.#mayHaveDuplicates = true;
    return write !== undefined;
  }

  /** Two claims that are not being deleted must not serve one interface of one owner on one network. */
  #checkDuplicates(): void {
    const living = this.world
      .list('claims')
      .filter((claim) => CLAIM_VM_NETWORK in (claim.metadata.annotations ?? {}) && !isBeingDeleted(claim));
    const keys = living.map((claim) =>
      [claimOwnerOf(claim)?.uid, claim.metadata.annotations?.[CLAIM_VM_NETWORK], claim.spec.network].join(),
    );
    const twice = keys.find((key, index) => keys.indexOf(key) !== index);
    if (twice !== undefined) throw new Error(`two claims for ${twice}: ${this.describe()}`);
  }

  /** Checks a settled world: the desired claims and no others exist, and everything that should run does. */
  checkSettled(): void {
    // only a user can end a launcher that no VMI controls
    if (this.kubevirt.launchers.running().some((pod) => pod.metadata.ownerReferences === undefined)) return;
    const owner = this.#owner();
    const networks = this.#networks();
    for (const claim of this.world
      .list('claims')
      .filter((found) => found.metadata.finalizers?.includes(CLAIM_FINALIZER))) {
      if (this.#isCarried(claim) || this.#isWaiting(claim, networks)) continue;
      if (claimOwnerOf(claim)?.uid !== owner)
        throw new Error(`${claim.metadata.name} has the wrong owner: ${this.describe()}`);
      if (!this.#mayExist(claim, networks)) throw new Error(`${claim.metadata.name} is left over: ${this.describe()}`);
    }
    if (!this.#isBlocked()) this.#checkWanted(networks);
  }

  checkEmpty(): void {
    const left = [
      ...this.world.list('vms').filter(({ metadata }) => metadata.name === 'vm1'),
      ...this.world.list('vmis'),
    ];
    const claims = this.world.list('claims').filter((claim) => (claim.metadata.finalizers ?? []).length > 0);
    if (left.length + claims.length > 0) throw new Error(`something is left: ${this.describe()}`);
  }

  describe(): string {
    const lines = KINDS.flatMap((kind) => this.world.list(kind).map((object) => `${kind}: ${describeObject(object)}`));
    return `\n${lines.join('\n')}\nretries: ${[...this.controller.retries].join(', ')}`;
  }

  async #retry(): Promise<void> {
    const count = this.controller.retries.size;
    for (let index = 0; index < count; index++) await this.controller.syncNext();
  }

  /** Invariant 3: no running launcher uses the claim and, if its owner is being deleted, nothing of the owner is left. */
  #checkRemoval(claim: IPAMClaim): void {
    const users = this.kubevirt.launchers.podsOfClaim(claim.metadata.uid ?? '');
    if (users.length > 0)
      this.#violations.push(`${claim.metadata.name} goes while a launcher uses it: ${this.describe()}`);
    const uid = claimOwnerOf(claim)?.uid;
    const vm = this.world.get('vms', VM_KEY);
    const vmi = this.world.get('vmis', VM_KEY);
    const lives = vm?.metadata.uid === uid && vm !== undefined && !isBeingDeleted(vm);
    const vmiLives = vmi !== undefined && ownerOfVmi(vmi).uid === uid;
    if (!lives && vmiLives && isBeingDeleted(vmi)) {
      this.#violations.push(`${claim.metadata.name} goes before the VMI of its owner: ${this.describe()}`);
    }
  }

  /** A claim of a living owner stays with it, and its addresses never become those of another owner's pods. */
  #checkOwner(before: IPAMClaim, after: IPAMClaim): void {
    const former = claimOwnerOf(before)?.uid;
    const owner = claimOwnerOf(after)?.uid;
    if (former === owner || former === undefined) return;
    const { name, uid = '' } = after.metadata;
    const vmi = this.world.get('vmis', VM_KEY);
    const isVmiOf = (uids: (string | undefined)[]) => vmi !== undefined && uids.includes(ownerOfVmi(vmi).uid);
    // its VM may orphan the VMI again after the controller has read it
    const isAdopted = [vmi, this.controller.vmiRead].some(
      (read) => read?.metadata.uid === former && ownerOfVmi(read).uid === owner,
    );
    if (!isAdopted && this.#isAlive(former)) {
      this.#violations.push(`${name} is taken from a living owner: ${this.describe()}`);
    }
    const users = this.kubevirt.launchers.podsOfClaim(uid).map((pod) => controllingVmi(pod)?.uid);
    const isOfVmi = (user: string | undefined) => user === vmi?.metadata.uid && isVmiOf([owner, user]);
    // a launcher of an adopted VMI may have lost its owner reference, as its VMI was deleted with orphan propagation
    if (users.some((user) => !isOfVmi(user) && !(user === undefined && isAdopted))) {
      this.#violations.push(`${name} is given away while a launcher uses it: ${this.describe()}`);
    }
  }

  #isAlive(uid: string): boolean {
    const owners = [...this.world.list('vms'), ...this.world.list('vmis')];
    return owners.some((object) => object.metadata.uid === uid && !isBeingDeleted(object));
  }

  #owner(): string | undefined {
    const vmi = this.world.get('vmis', VM_KEY);
    return this.world.get('vms', VM_KEY)?.metadata.uid ?? (vmi && ownerOfVmi(vmi).uid);
  }

  /** Claims of other clients exist, so the workload may wait for them. */
  #isBlocked(): boolean {
    return this.world.list('claims').some((claim) => (claim.metadata.finalizers ?? []).length === 0);
  }

  /** A VM that is being deleted wants nothing more; it may wait for a claim that an orphaned VMI uses. */
  #networks(): SecondaryNetwork[] {
    const vm = this.world.get('vms', VM_KEY);
    const vmSpec = vm === undefined || isBeingDeleted(vm) ? undefined : vm.spec?.template?.spec;
    const specs = [vmSpec, this.world.get('vmis', VM_KEY)?.spec];
    return specs
      .flatMap((spec) => secondaryNetworks(spec, NAMESPACE))
      .filter(({ isUnplugRequested }) => !isUnplugRequested);
  }

  #configOf({ nad }: SecondaryNetwork) {
    return networkOf(this.world, joinKey(nad.namespace, nad.name));
  }

  #wants(network: SecondaryNetwork): boolean {
    const optedOut = this.world.get('namespaces', NAMESPACE)?.metadata.labels?.[PERSISTENT_IPS_LABEL] !== undefined;
    const config = this.#configOf(network);
    return !optedOut && config?.ok === true && config.network.allowPersistentIPs;
  }

  /** A running launcher has the claim's addresses, references the claim, or has its interface without proof that another claim is used. */
  #isCarried(claim: IPAMClaim): boolean {
    const { launchers } = this.kubevirt;
    const nad = claimNadOf(claim);
    const running = launchers.running();
    return (
      launchers.podsOfClaim(claim.metadata.uid ?? '').length > 0 ||
      running.some((pod) => refersTo(pod, claim, { needsPrimaryNetwork: false })) ||
      running.some((pod) =>
        elementsOf(pod).some(
          (element) =>
            element.interface === claim.spec.interface &&
            joinKey(element.namespace, element.name) === nad &&
            !this.#refersToOlderClaim(element, pod),
        ),
      )
    );
  }

  /** The reference to a claim that is younger than the pod may be that of an interface which was plugged again. */
  #refersToOlderClaim({ 'ipam-claim-reference': name = '' }: SelectionElement, { metadata }: Pod): boolean {
    const { creationTimestamp = '' } = this.world.get('claims', joinKey(NAMESPACE, name))?.metadata ?? {};
    return creationTimestamp !== '' && creationTimestamp < (metadata.creationTimestamp ?? '');
  }

  /** A restored claim waits for an owner that wants it. */
  #isWaiting(claim: IPAMClaim, networks: readonly SecondaryNetwork[]): boolean {
    const uid = claimOwnerOf(claim)?.uid ?? '';
    const isRestored =
      !this.world.hasUid(uid) && ((controllerOf(claim) === undefined && isOfVelero(claim)) || isApplied(claim));
    const isWanted = networks.some((network) => {
      const config = this.#configOf(network);
      const fits = config?.ok === true && config.network.name === claim.spec.network;
      return (
        network.name === claimVmNetworkOf(claim) && fits && this.#wants(network) && this.#claimsOf(network).length === 0
      );
    });
    return isRestored && !isWanted;
  }

  #mayExist(claim: IPAMClaim, networks: readonly SecondaryNetwork[]): boolean {
    if (isBeingDeleted(claim) && this.world.get('vmis', VM_KEY) === undefined) return false;
    return networks.some((network) => {
      const config = this.#configOf(network);
      const fits = config?.ok !== true || config.network.name === claim.spec.network;
      return network.name === claimVmNetworkOf(claim) && (fits || this.#isKept(claim, network));
    });
  }

  /** If no other claim may be created, the interface keeps the claim of its NAD, even if the NAD names another network now. */
  #isKept(claim: IPAMClaim, network: SecondaryNetwork): boolean {
    const isOfNad = claimNadOf(claim) === joinKey(network.nad.namespace, network.nad.name);
    return isOfNad && !isBeingDeleted(claim) && !this.#wants(network);
  }

  #checkWanted(networks: readonly SecondaryNetwork[]): void {
    for (const network of networks) if (this.#wants(network)) this.#checkServed(network);
    if (this.controller.retries.size > 0) throw new Error(`it waits for nothing: ${this.describe()}`);
    this.#checkRunning();
  }

  #checkServed(network: SecondaryNetwork): void {
    const { length } = this.#claimsOf(network);
    if (length !== 1) throw new Error(`${network.name} has ${length} claims: ${this.describe()}`);
  }

  #claimsOf(network: SecondaryNetwork): IPAMClaim[] {
    const config = this.#configOf(network);
    return this.world
      .list('claims')
      .filter((claim) => claimVmNetworkOf(claim) === network.name && claimOwnerOf(claim)?.uid === this.#owner())
      .filter((claim) => config?.ok === true && claim.spec.network === config.network.name);
  }

  #checkRunning(): void {
    const missing = this.#networks().some((network) => this.#configOf(network) === undefined);
    const vmi = this.world.get('vmis', VM_KEY);
    const vm = this.world.get('vms', VM_KEY);
    const shallRun = vm === undefined ? vmi !== undefined : vm.running && !isBeingDeleted(vm);
    const failed = vmi?.status?.phase === 'Failed';
    if (shallRun && !missing && !failed && (vmi === undefined || !this.kubevirt.hasRunningLauncher(vmi))) {
      throw new Error(`the VM does not run: ${this.describe()}`);
    }
  }
}

function isOfVelero({ metadata }: IPAMClaim): boolean {
  return VELERO_RESTORE_NAME in (metadata.labels ?? {});
}

/** `kubectl apply` created the claim. */
function isApplied({ metadata }: IPAMClaim): boolean {
  return LAST_APPLIED_ANNOTATION in (metadata.annotations ?? {});
}

function describeObject(object: KubeObject): string {
  const { metadata, apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  const { name, uid, deletionTimestamp, finalizers, ownerReferences, annotations, resourceVersion } = metadata;
  const owners = ownerReferences?.map((reference) => reference.uid);
  return JSON.stringify({ name, uid, resourceVersion, deletionTimestamp, finalizers, owners, annotations, ...rest });
}
