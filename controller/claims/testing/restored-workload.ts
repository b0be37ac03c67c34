import { launcher, vm } from '../../../test/objects/workload-objects.js';

/** The VM of a backup, which is gone. */
export const FORMER = { name: 'vm1', uid: 'former-uid' };
/** The VM that was restored for it. */
export const restoredVm = vm({ data: 'blue' }, { uid: 'new-uid' });
/** A launcher of the former VM. */
export const oldLauncher = launcher([{ nad: 'blue', claim: 'vm1.data' }], { vmi: 'former-vmi-uid' });
