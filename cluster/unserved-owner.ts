/** The message of the condition and the event of a claim that is not released. */
export const OWNER_KIND_NOT_SERVED =
  'The API server does not serve VirtualMachines or VirtualMachineInstances (kubevirt.io/v1), so Holdfast cannot check whether the owner of this claim exists. ' +
  "The claim keeps its addresses. Install KubeVirt's CRDs again, or, if its VM and launcher pods are gone for good, remove the claim's finalizer kubevirt.io/persistent-ipam and delete the claim";
