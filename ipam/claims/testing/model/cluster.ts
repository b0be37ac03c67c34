import fc from 'fast-check';
import { PROBE_LIMITS } from '../../../../api/limits.js';
import { TransportError } from '../../../../kube/errors.js';
import type { Fault } from '../../../../kube/testing/memory-transport.js';
import type { ApiRequest } from '../../../../kube/transport/transport.js';
import type { ParsedNad } from '../../../../cluster/transforms.js';
import { holdfastConfig, nad } from '../../../../test/objects/pool-objects.js';
import { SimulatedApi } from './api.js';
import { Invariants } from './invariants.js';
import { type Operation, expire, applyOperation } from './operations.js';
import { setPool } from './pools.js';
import { MAX_STALENESS_MS, IpamModelProcess } from './process.js';
import { checkSettled, checkWaitList } from './settled.js';
import { KINDS, IpamWorld } from './world.js';

/**
 * A failure of request number `request` of a sync, without an answer. `lost`: it is applied; `late`: it is applied when time passes.
 * `endsProcess`: all later requests fail as well, and the process is restarted.
 */
export interface RequestFailure {
  request: number;
  fate: 'lost' | 'failed' | 'late';
  endsProcess: boolean;
}

export const requestFailure: fc.Arbitrary<RequestFailure> = fc.record({
  request: fc.nat({ max: 6 }),
  fate: fc.constantFrom<RequestFailure['fate']>('lost', 'failed', 'late'),
  endsProcess: fc.boolean(),
});

/** An event while a claim is synced. */
export type Interruption = (key: string) => void | Promise<void>;

const MAX_ROUNDS = 300;
/** Two leaders that disagree longer than this get time. */
const ROUNDS_WITHOUT_TIME = 50;

/** A model world with two IPAM processes that both act as the leader. */
export class IpamModelCluster {
  readonly world = new IpamWorld();
  readonly invariants = new Invariants(this.world);
  readonly api = new SimulatedApi(this.world, this.invariants);
  readonly processes: IpamModelProcess[];
  isGateOpen = true;
  readonly #late: { request: ApiRequest; lookedAt: number | undefined }[] = [];
  readonly #networks: readonly ParsedNad[] = [
    nad('vms/blue', holdfastConfig()),
    // the same network without IPAM
    nad('vms/layer2', { name: 'blue', type: 'bridge' }, 2),
  ];

  constructor() {
    setPool(this.world, 'small');
    this.processes = [this.#start(), this.#start()];
  }

  operate(operation: Operation): void {
    if (operation.do === 'pass') this.#arriveLate();
    applyOperation(this.world, this.invariants, operation);
  }

  restart(index: number): void {
    this.processes[index] = this.#start();
  }

  /** @param interruptions called before its requests, one after the other */
  async sync(
    index: number,
    failure: RequestFailure | undefined,
    interruptions: readonly Interruption[],
  ): Promise<void> {
    const key = this.#process(index).nextKey;
    if (key === undefined) return;
    let requests = 0;
    let lookedAt: number | undefined;
    let hasWritten = false;
    const left = [...interruptions];
    const before = async (request: ApiRequest): Promise<Fault> => {
      // if the write of a status succeeded, the claim was still the version that was read
      if (hasWritten) lookedAt = this.world.version;
      hasWritten = request.method === 'PATCH' && request.path.includes('/ipamclaims/');
      // the interruption itself has no failures
      this.#undisturbed();
      await left.shift()?.(key);
      this.api.before = before;
      if (request.method === 'GET' && request.path.includes('/ipamclaims/')) lookedAt = this.world.version;
      this.invariants.readAtVersion = lookedAt;
      const number = requests++;
      if (failure === undefined || number < failure.request || (number > failure.request && !failure.endsProcess))
        return;
      const fate = number === failure.request ? failure.fate : 'failed';
      if (fate === 'late') this.#late.push({ request, lookedAt });
      const applied = fate === 'lost';
      return { error: new TransportError('broken', 'the connection broke'), applied };
    };
    this.api.before = before;
    await this.#process(index).syncFromQueue(key);
    this.#undisturbed();
    if (failure?.endsProcess === true && requests > failure.request) this.restart(index);
  }

  /** While one process syncs a claim, the other one, which is up to date, syncs it to the end. Then the first one sees its leases. */
  async overtake(index: number, key: string): Promise<void> {
    const other = this.#process(1 - index);
    other.deliverAll();
    await other.syncFromQueue(key);
    this.#process(index).deliver('addressleases', Infinity);
  }

  /**
   * Delivers all events and syncs until nothing changes any more. A leader that learned of a release late counts a later cool-down, so it overwrites the status
   * that the other one writes, but only until the cool-down has ended for both. So time passes only while they disagree.
   */
  async settle(): Promise<void> {
    this.#arriveLate();
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (round > 0 && round % ROUNDS_WITHOUT_TIME === 0) this.world.now += 2 * MAX_STALENESS_MS;
      const before = this.world.version;
      const news = this.processes.map((process) => process.deliverAll());
      for (const index of this.processes.keys()) {
        const { queue } = this.#process(index);
        // the directory reports its changes asynchronously
        await Promise.resolve();
        while (queue.size > 0) await this.#process(index).syncNext();
        const failed = this.#process(index).retries.size;
        for (let count = 0; count < failed; count++) await this.#process(index).syncNext();
      }
      const rests = this.processes.every(({ queue, retries }) => queue.size + retries.size === 0);
      if (this.world.version !== before || news.includes(true) || !rests) continue;
      if (!this.#endProbes()) return;
    }
    throw new Error(`the model does not settle: ${this.describe()}`);
  }

  /** Lets the time pass in which responders may answer. @returns false if no claim waits for that */
  #endProbes(): boolean {
    const waiting = this.processes.filter(({ awaiting }) => awaiting.size > 0);
    if (waiting.length > 0) this.world.now += PROBE_LIMITS.timeoutMs;
    for (const { awaiting, queue } of waiting) for (const key of awaiting) queue.add(key);
    return waiting.length > 0;
  }

  /** Lets every cool-down end, and settles. */
  async coolDown(): Promise<void> {
    for (let round = 0; round < 6; round++) {
      this.world.now += 2 * MAX_STALENESS_MS + 1000;
      expire(this.world);
      await this.settle();
    }
  }

  checkSettled(): void {
    try {
      checkSettled(this.world, this.invariants.inUse);
    } catch (error) {
      (error as Error).message += this.describe();
      throw error;
    }
  }

  /** A claim that is refused would also be refused if it were new. */
  checkWaitList(): void {
    try {
      checkWaitList(this.world);
    } catch (error) {
      (error as Error).message += this.describe();
      throw error;
    }
  }

  describe(): string {
    const lines = KINDS.flatMap((kind) =>
      this.world.list(kind).map(({ metadata, ...rest }) => {
        const { name, uid, annotations, deletionTimestamp } = metadata;
        return `${kind} ${JSON.stringify({ name, uid, annotations, deletionTimestamp, ...rest })}`;
      }),
    );
    return `\n${lines.join('\n')}\nlast requests: ${this.api.seen.slice(-12).join(', ')}`;
  }

  /** Applies the writes without an answer that have not arrived yet. Nobody learns whether they are refused. */
  #arriveLate(): void {
    for (const { request, lookedAt } of this.#late.splice(0)) {
      this.invariants.readAtVersion = lookedAt;
      try {
        this.api.serve(request);
      } catch (error) {
        if ((error as Error).name === 'Violation') throw error;
      }
    }
    this.invariants.readAtVersion = undefined;
  }

  /** From now on no request fails and no other process interferes. */
  #undisturbed(): void {
    this.api.before = () => undefined;
    this.invariants.readAtVersion = undefined;
  }

  #process(index: number): IpamModelProcess {
    const process = this.processes[index];
    if (process === undefined) throw new RangeError(`there is no process ${index}`);
    return process;
  }

  #start(): IpamModelProcess {
    return new IpamModelProcess(this.world, this.api, this.#networks, () => this.isGateOpen);
  }
}
