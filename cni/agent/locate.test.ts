import { expect } from 'chai';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import { CniError } from './cni-error.js';
import { type Asked, attachmentOf } from './locate.js';

const ASKED: Asked = { containerId: 'c1', interfaceName: 'net2', network: 'blue', requested: [], mac: undefined };

function locate(annotation: string | undefined, interfaceName = 'net2') {
  const annotations = annotation === undefined ? {} : { [NETWORKS_ANNOTATION]: annotation };
  const pod = { metadata: { namespace: 'vms', name: 'p1', uid: 'u1', annotations } };
  return attachmentOf({ ...ASKED, interfaceName }, pod).selection;
}

describe('the element of a pod that an interface is for', () => {
  it('is the one that asks for its name', () => {
    const text = JSON.stringify([{ name: 'blue' }, { name: 'blue', interface: 'pod37a8eec1ce1', namespace: 'nets' }]);
    expect(locate(text, 'pod37a8eec1ce1')).to.deep.include({ position: 2, nad: { namespace: 'nets', name: 'blue' } });
  });

  it('is the one that Multus counts, where none asks for a name', () => {
    expect(locate('red,nets/blue')).to.deep.include({ position: 2, nad: { namespace: 'nets', name: 'blue' } });
    expect(locate('red,nets/blue@eth7')).to.equal(undefined);
  });

  it("is none for the pod's own network, or where the pod has no networks", () => {
    expect(locate('red,blue', 'eth0')).to.equal(undefined);
    expect(locate(undefined)).to.equal(undefined);
    expect(locate('')).to.equal(undefined);
  });

  it('is unknown where the annotation cannot be read', () => {
    expect(() => locate('[{"name": 1}]'))
      .to.throw(CniError, /k8s\.v1\.cni\.cncf\.io\/networks of pod vms\/p1 cannot be read: element 0/)
      .with.property('code', 100);
  });
});
