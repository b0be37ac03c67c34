import { expect } from 'chai';
import { resourcePath } from '../../kube/resource.js';
import { resourceOf } from './objects.js';

describe('The API path of an object', () => {
  const cases = [
    { apiVersion: 'v1', kind: 'Namespace', expect: '/api/v1/namespaces/x' },
    { apiVersion: 'v1', kind: 'Service', namespace: 'a', expect: '/api/v1/namespaces/a/services/x' },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      namespace: 'a',
      expect: '/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/x',
    },
    { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', expect: '/apis/storage.k8s.io/v1/storageclasses/x' },
    {
      apiVersion: 'k8s.cni.cncf.io/v1',
      kind: 'NetworkAttachmentDefinition',
      namespace: 'a',
      expect: '/apis/k8s.cni.cncf.io/v1/namespaces/a/network-attachment-definitions/x',
    },
  ];
  for (const { apiVersion, kind, namespace, expect: path } of cases) {
    it(`of kind ${kind} is ${path}`, () => {
      const object = { apiVersion, kind, metadata: { name: 'x', ...(namespace ? { namespace } : {}) } };
      expect(resourcePath(resourceOf(object), object.metadata)).to.equal(path);
    });
  }
});
