/** The message of the condition and the event of a claim that is not released. */
export const OWNER_KIND_NOT_SERVED =
  'The API server does not serve VirtualMachines or VirtualMachineInstances (kubevirt.io/v1), so it is unknown whether the owner of this claim exists. ' +
  "The claim keeps its addresses. Install KubeVirt's CRDs again, or free the claim by hand as docs/how-to/troubleshoot.md describes";
