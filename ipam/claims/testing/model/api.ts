import type { AddressLease } from '../../../../api/address-lease.js';
import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import { MemoryTransport, targetOf } from '../../../../kube/testing/memory-transport.js';
import type { Admission } from '../../../../kube/testing/object-tracker.js';
import { FORBIDDEN, refusal } from '../../../../kube/testing/refusals.js';
import type { ApiRequest } from '../../../../kube/transport/transport.js';
import type { IpamWorld } from './world.js';

/** Checks each write before it is stored. */
export interface WriteChecks {
  checkLeaseChange(before: AddressLease | undefined, after: AddressLease | undefined): void;
  checkStatusChange(before: IPAMClaim, after: IPAMClaim): void;
}

/** The API server of a model world, as the ipam process uses it. */
export class SimulatedApi extends MemoryTransport {
  /** `<method> <plural> <name> <subresource>` of each request that was served. */
  readonly seen: string[] = [];
  readonly #checks: WriteChecks;

  constructor({ tracker }: IpamWorld, checks: WriteChecks) {
    super(tracker);
    this.#checks = checks;
    tracker.admit = (admission) => this.#check(admission);
  }

  override serve(request: ApiRequest): unknown {
    const { kind, name, subresource } = targetOf(request.path);
    this.seen.push([request.method, kind.plural, name, subresource].filter(Boolean).join(' '));
    return super.serve(request);
  }

  #check({ kind, subresource, before, after }: Admission): void {
    if (kind.plural === 'addressleases')
      this.#checks.checkLeaseChange(before as AddressLease | undefined, after as AddressLease | undefined);
    else if (kind.plural === 'ipamclaims' && subresource === 'status')
      this.#checks.checkStatusChange(before as IPAMClaim, after as IPAMClaim);
    else throw refusal(kind, after?.metadata.name ?? '', FORBIDDEN, 'only leases and the status of claims are ours');
  }
}
