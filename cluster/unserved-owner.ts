/** Why a claim is not released, in its condition and its event. */
export const OWNER_KIND_NOT_SERVED =
  'The API server serves no VirtualMachines or VirtualMachineInstances (kubevirt.io/v1), so it cannot be proved that the owner of this claim is gone: ' +
  "the claim keeps its addresses. Install KubeVirt's CRDs again, or free the claim by hand as docs/how-to/troubleshoot.md says";
