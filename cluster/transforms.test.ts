import { expect } from 'chai';
import { nadDefinition } from '../test/objects/pool-objects.js';
import { vm, vmi } from '../test/objects/workload-objects.js';
import { changesNetwork, transformNad, transformNode, transformVm, transformVmi } from './transforms.js';

const MAC = '02:00:00:00:00:01';

describe('the transforms of cached objects', () => {
  it('keep of a VM its identity, finalizers, and networks by name and NAD', () => {
    const full = vm({ data: 'blue', extra: '!green' }, { deleting: true, finalizers: ['orphan'] });
    full.metadata = { ...full.metadata, resourceVersion: '7', annotations: { big: 'x' }, labels: { big: 'x' } };
    Object.assign(full.spec?.template?.spec ?? {}, { volumes: ['x'], terminationGracePeriodSeconds: 30 });
    expect(transformVm(full)).to.deep.equal({
      metadata: {
        name: 'vm1',
        namespace: 'vms',
        uid: 'vm-uid',
        resourceVersion: '7',
        deletionTimestamp: '2026-01-01T00:00:00Z',
        finalizers: ['orphan'],
      },
      spec: {
        template: {
          spec: {
            networks: [
              { name: 'default', pod: {} },
              { name: 'data', multus: { networkName: 'blue' } },
              { name: 'extra', multus: { networkName: 'green' } },
            ],
            domain: { devices: { interfaces: [{ name: 'extra', state: 'absent' }] } },
          },
        },
      },
    });
  });

  it('keep of a VM and a VMI the requested addresses, and no other annotation', () => {
    const asked = { 'network.kubevirt.io/addresses': '{"data": ["10.0.0.5"]}' };
    const full = vm({ data: 'blue' });
    Object.assign(full.spec?.template ?? {}, { metadata: { annotations: { big: 'x', ...asked } } });
    expect(transformVm(full).spec?.template?.metadata).to.deep.equal({ annotations: asked });
    const running = vmi({ data: 'blue' });
    running.metadata.annotations = { big: 'x', ...asked };
    expect(transformVmi(running).metadata.annotations).to.deep.equal(asked);
  });

  // the schema of KubeVirt allows null in a template, and its webhooks do not look at a VM that is being deleted
  it('read an annotation of a VM that is null as empty text, as KubeVirt does', () => {
    const key = 'network.kubevirt.io/addresses';
    const full = vm({ data: 'blue' });
    Object.assign(full.spec?.template ?? {}, { metadata: { annotations: { [key]: null } } });
    expect(transformVm(full).spec?.template?.metadata).to.deep.equal({ annotations: { [key]: '' } });
  });

  it('keep what decides about the default routes of a guest', () => {
    const wanted = { 'ipam.holdfast.dev/default-route': 'data' };
    const interfaces = [
      { name: 'data', sriov: { x: 1 } },
      { name: 'more', binding: { name: 'passt' } },
    ];
    const volumes = [{ name: 'cloudinit', cloudInitConfigDrive: { networkDataBase64: 'eA==' } }];
    const spec = { networks: [], domain: { devices: { interfaces } }, volumes };
    const { template } = transformVm({
      metadata: { name: 'vm1' },
      spec: { template: { metadata: { annotations: wanted }, spec } },
    }).spec!;
    expect(template).to.deep.equal({
      metadata: { annotations: wanted },
      spec: {
        networks: [],
        domain: {
          devices: {
            interfaces: [
              { name: 'data', sriov: {} },
              { name: 'more', binding: {} },
            ],
          },
        },
        volumes: [{ cloudInitNoCloud: { networkDataSecretRef: {} } }],
      },
    });
  });

  it('keep the MAC addresses of the interfaces of a VM and a VMI', () => {
    const spec = {
      networks: [],
      domain: { devices: { interfaces: [{ name: 'data', macAddress: MAC, model: 'virtio' }, { name: 'x' }] } },
    };
    const small = { networks: [], domain: { devices: { interfaces: [{ name: 'data', macAddress: MAC }] } } };
    const vm = transformVm({ metadata: { name: 'vm1' }, spec: { template: { spec } } });
    expect(vm.spec?.template?.spec).to.deep.equal(small);
    expect(transformVmi({ metadata: { name: 'vm1' }, spec }).spec).to.deep.equal(small);
  });

  it('keep of the status of a VMI the MAC addresses of the domain, and no phase while it may run', () => {
    const interfaces = [
      { name: 'a', mac: MAC, infoSource: 'domain, guest-agent' },
      { name: 'b', mac: MAC, infoSource: 'guest-agent', podInterfaceName: 'net1' },
      { name: 'c', mac: '0'.repeat(10_000), infoSource: 'domain' },
      { mac: MAC, infoSource: 'guest-agent' },
    ];
    expect(transformVmi({ metadata: { name: 'vm1' }, status: { phase: 'Running', interfaces } }).status).to.deep.equal({
      interfaces: [
        { name: 'a', mac: MAC, infoSource: 'domain' },
        { name: 'b', podInterfaceName: 'net1' },
        { name: 'c' },
        {},
      ],
    });
  });

  it('keep the phase of a VMI that has ended', () => {
    const status = { phase: 'Succeeded', interfaces: [] };
    expect(transformVmi({ metadata: { name: 'vm1' }, status }).status).to.deep.equal(status);
  });

  it('keep the first 256 networks of a VM and a VMI with too many', () => {
    const names = Array.from({ length: 20_000 }, (_, index) => `net${index}`);
    const spec = {
      networks: names.map((name) => ({ name, multus: { networkName: 'blue' } })),
      domain: { devices: { interfaces: names.map((name) => ({ name, macAddress: MAC })) } },
    };
    const vm = transformVm({ metadata: { name: 'vm1' }, spec: { template: { spec } } }).spec?.template?.spec;
    for (const small of [vm, transformVmi({ metadata: { name: 'vm1' }, spec }).spec]) {
      expect(small?.networks?.map(({ name }) => name)).to.deep.equal(names.slice(0, 256));
      expect(small?.domain?.devices?.interfaces?.map(({ name }) => name)).to.deep.equal(names.slice(0, 256));
    }
  });

  it('keep the identity of a VM without a template', () => {
    expect(transformVm({ metadata: { name: 'vm1' } })).to.deep.equal({ metadata: { name: 'vm1' } });
  });

  it('keep of a NAD its identity, age, network, and IPAM delegation', () => {
    const config = JSON.stringify({ name: 'blue', type: 'bridge', ipam: { type: 'host-local', subnet: '10.0.0.0/8' } });
    const metadata = { name: 'n', namespace: 'vms', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' };
    expect(transformNad({ metadata: { ...metadata, annotations: { big: 'x' } }, spec: { config } })).to.deep.equal({
      metadata,
      config: { ok: true, network: { name: 'blue', allowPersistentIPs: false } },
      delegation: { kind: 'other', type: 'host-local' },
      delivery: { kind: 'cni' },
      pluginFingerprints: [],
    });
  });

  it('keep of a node its identity and labels, which its heartbeats do not change', () => {
    const metadata = { name: 'n1', uid: 'u', resourceVersion: '5', labels: { zone: 'a' } };
    const full = { metadata: { ...metadata, annotations: { big: 'x' } }, status: { conditions: ['x'] } };
    expect(transformNode(full)).to.deep.equal({ metadata });
  });
});

describe('A change of a NAD', () => {
  const made = (config: object, metadata: object) => {
    const nad = nadDefinition('vms/blue', config);
    return transformNad({ ...nad, metadata: { ...nad.metadata, ...metadata } });
  };
  const before = made({ name: 'blue' }, { resourceVersion: '1' });
  const isRelevant = (object: ReturnType<typeof made>) => changesNetwork({ type: 'changed', object, before });

  it('of labels and annotations changes no network', () => {
    const metadata = { resourceVersion: '2', labels: { a: 'b' }, annotations: { c: 'd' } };
    expect(isRelevant(made({ name: 'blue' }, metadata))).to.equal(false);
  });

  it('of the config changes the network, and so do a new NAD of the same name and a deletion', () => {
    expect(isRelevant(made({ name: 'blue', allowPersistentIPs: true }, { resourceVersion: '2' }))).to.equal(true);
    expect(isRelevant(made({ name: 'blue' }, { resourceVersion: '2', uid: 'other' }))).to.equal(true);
    expect(isRelevant(made({ name: 'blue' }, { deletionTimestamp: '2026-01-01T00:00:00Z' }))).to.equal(true);
    expect(changesNetwork({ type: 'removed', object: before, before })).to.equal(true);
    expect(changesNetwork({ type: 'added', object: before })).to.equal(true);
  });
});
