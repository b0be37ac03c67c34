import { expect } from 'chai';
import { describeForbidden } from './forbidden.js';

describe('a refused right', () => {
  for (const [given, expected] of [
    [
      'pods is forbidden: User "system:serviceaccount:a:b" cannot list resource "pods" in API group "" in the namespace "lab"',
      'user "system:serviceaccount:a:b" may not list pods in namespace lab: ask an administrator for this right, which the ClusterRole view contains',
    ],
    [
      'addresspools.ipam.holdfast.dev "blue" is forbidden: User "jane" cannot patch resource "addresspools/status" in API group "ipam.holdfast.dev" at the cluster scope: extra',
      'user "jane" may not patch addresspools.ipam.holdfast.dev/status in the whole cluster: ask an administrator for this right, which the ClusterRole holdfast-pool-admin contains',
    ],
    [
      'no: User "jane" cannot list resource "ipamclaims" in API group "k8s.cni.cncf.io" in the namespace "lab"',
      'user "jane" may not list ipamclaims.k8s.cni.cncf.io in namespace lab: ask an administrator for this right, which the ClusterRole holdfast-view-claims contains',
    ],
    [
      'no: User "jane" cannot get resource "network-attachment-definitions" in API group "k8s.cni.cncf.io" in the namespace "lab"',
      'user "jane" may not get network-attachment-definitions.k8s.cni.cncf.io in namespace lab: ask an administrator for this right, for which Multus ships no role',
    ],
    [
      'no: User "jane" cannot get resource "virtualmachines" in API group "kubevirt.io" in the namespace "lab"',
      'user "jane" may not get virtualmachines.kubevirt.io in namespace lab: ask an administrator for this right, which the ClusterRole kubevirt.io:view contains',
    ],
    [
      'no: User "jane" cannot patch resource "ipamclaims" in API group "k8s.cni.cncf.io" in the namespace "lab"',
      'user "jane" may not patch ipamclaims.k8s.cni.cncf.io in namespace lab: ask an administrator for this right',
    ],
  ] as const)
    it(`is named in words: ${expected}`, () => expect(describeForbidden({ message: given })).to.equal(expected));

  it('is not assumed if a quota or a policy refuses', () => {
    expect(describeForbidden({ message: 'pods "a" is forbidden: exceeded quota: q' })).to.equal(undefined);
  });
});
