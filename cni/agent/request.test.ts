import { expect } from 'chai';
import fc from 'fast-check';
import { pluginFingerprint } from '../../api/networks/ipam-delegation.js';
import {
  CONTAINERD_NETNS,
  NO_POD_ENV,
  containerdArgs,
  crioArgs,
  formatCniArgs,
  hotplugArgs,
  thickMultusArgs,
  thinMultusArgs,
} from '../../test/container-runtimes.js';
import { NETWORK_CONFIG, REQUEST_POD, pluginRequest } from '../testing/cni-requests.js';
import { PREV_RESULTS } from './testing/cni-results.js';
import { formatAddress } from '../../addressing/address/address.js';
import { CniError } from './cni-error.js';
import { type AddRequest, type CniRequest, CNI_COMMANDS, readCniRequest, readPluginRequest } from './request.js';

type Env = Record<string, string | undefined>;

function refusalOf(command: string, env: Env, config: object | string): CniError {
  const ask = pluginRequest(command, env, typeof config === 'string' ? {} : config);
  try {
    readCniRequest(typeof config === 'string' ? { ...ask, config } : ask);
  } catch (error) {
    if (error instanceof CniError) return error;
    throw error;
  }
  throw new Error('the request was read');
}

function read<Command extends CniRequest['command']>(command: Command, env: Env = {}, config: object = {}) {
  const request = readCniRequest(pluginRequest(command, env, config));
  return request as Extract<CniRequest, { command: Command }>;
}

function requestedIn(config: object, env: Env = {}): string[] {
  return read('ADD', env, config).requested.map(formatAddress);
}

interface Given {
  command?: string;
  env?: Env;
  config?: object | string;
}

describe('reading a CNI request', () => {
  it('returns everything that an ADD needs', () => {
    expect(read('ADD')).to.deep.equal({
      command: 'ADD',
      version: '1.0.0',
      network: 'blue',
      containerId: 'c1',
      interfaceName: 'net1',
      pod: { namespace: 'vms', name: 'p1', uid: 'p1-uid' },
      netns: '/run/netns/p1',
      requested: [],
      mac: undefined,
      fingerprint: pluginFingerprint(NETWORK_CONFIG),
      vlans: [],
      appliesGuards: true,
      extras: { routes: [], dns: {} },
    });
  });

  it('knows whether the plugin applies guards, which older ones do not', () => {
    for (const [guard, applies] of [
      [1, true],
      [undefined, false],
      ['1', false],
    ]) {
      const text = JSON.stringify({ ...pluginRequest('ADD'), guard });
      expect((readCniRequest(readPluginRequest(text)) as AddRequest).appliesGuards).to.equal(applies);
    }
  });

  it('ignores keys that it does not use, of which Multus and containerd send different values', () => {
    const keys = 'K8S_POD_NAMESPACE=vms;K8S_POD_NAME=p1;K8S_POD_UID=u1';
    for (const spelling of ['1', 't', 'True', 'FALSE', ''])
      expect(
        read('ADD', { CNI_ARGS: `IgnoreUnknown=true;${keys};IgnoreUnknown=${spelling};${keys}` }).pod,
      ).to.deep.equal({ ...{ namespace: 'vms', name: 'p1', uid: 'u1' } });
  });

  const requested = { mac: '0200.0000.0005', ips: ['10.0.0.5/24', 'fd00::5/64'] };
  const senders = {
    'Multus below containerd': thinMultusArgs(REQUEST_POD, containerdArgs(REQUEST_POD), requested),
    'Multus below CRI-O': thinMultusArgs(REQUEST_POD, crioArgs(REQUEST_POD), requested),
    'the daemon of Multus': thickMultusArgs(REQUEST_POD, requested),
    'the daemon of Multus at a hotplug': hotplugArgs(REQUEST_POD, requested),
  };
  for (const [sender, args] of Object.entries(senders)) {
    it(`reads what ${sender} sends, in each order`, () => {
      fc.assert(
        fc.property(fc.shuffledSubarray([...args], { minLength: args.length }), (shuffled) => {
          const env = { CNI_ARGS: formatCniArgs(shuffled), CNI_NETNS: CONTAINERD_NETNS };
          const { pod, mac } = read('ADD', env);
          expect(pod).to.deep.equal({ namespace: 'vms', name: 'p1', uid: 'p1-uid' });
          expect(mac).to.equal('02:00:00:00:00:05');
          expect(requestedIn({}, env)).to.deep.equal(['10.0.0.5', 'fd00::5']);
        }),
        { numRuns: 20 },
      );
    });
  }

  it('accepts an ADD without the UID of the pod', () => {
    const { pod } = read('ADD', { CNI_ARGS: 'K8S_POD_NAMESPACE=vms;K8S_POD_NAME=p1;K8S_POD_UID=;;' });
    expect(pod).to.deep.equal({ namespace: 'vms', name: 'p1' });
  });

  const versions: { command: string; good: string[]; bad: string[] }[] = [
    { command: 'ADD', good: ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'], bad: ['0.1.0', '0.2.0', '1.2.0', ''] },
    { command: 'CHECK', good: ['0.4.0', '1.0.0', '1.1.0'], bad: ['0.3.1', '2.0.0'] },
    { command: 'GC', good: ['1.1.0'], bad: ['0.3.1', '0.4.0', '1.0.0'] },
    { command: 'STATUS', good: ['1.1.0'], bad: ['0.3.1', '0.4.0', '1.0.0'] },
    { command: 'DEL', good: ['0.1.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0', '9.9.9', ''], bad: [] },
    { command: 'VERSION', good: ['0.1.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0', '9.9.9', ''], bad: [] },
  ];
  for (const { command, good, bad } of versions) {
    for (const cniVersion of good) {
      it(`accepts ${command} with cniVersion "${cniVersion}"`, () => {
        const request = readCniRequest(pluginRequest(command, {}, { cniVersion, prevResult: { ips: [] } }));
        expect(request.command).to.equal(command);
      });
    }
    for (const cniVersion of bad) {
      it(`refuses ${command} with cniVersion "${cniVersion}"`, () => {
        const { code, message } = refusalOf(command, {}, { cniVersion, prevResult: { ips: [] } });
        expect(code).to.equal(1);
        expect(message)
          .to.include('cniVersion')
          .and.to.include(cniVersion || 'absent');
      });
    }
  }

  it('requires only the variables that the verb needs', () => {
    const none = { CNI_NETNS: undefined, CNI_PATH: undefined, CNI_ARGS: undefined };
    expect(read('DEL', none)).to.deep.equal({ command: 'DEL', containerId: 'c1', interfaceName: 'net1' });
    const alone = { ...none, CNI_CONTAINERID: undefined, CNI_IFNAME: undefined };
    expect(read('STATUS', alone, { cniVersion: '1.1.0' })).to.deep.equal({ command: 'STATUS', network: 'blue' });
    expect(read('VERSION', alone)).to.deep.equal({ command: 'VERSION', version: '1.0.0' });
    expect(read('GC', { ...alone, CNI_PATH: '/x' }, { cniVersion: '1.1.0' })).to.include({ network: 'blue' });
    for (const command of ['GC', 'STATUS'] as const)
      // libcni sets all variables
      expect(read(command, NO_POD_ENV, { cniVersion: '1.1.0' })).to.include({ command, network: 'blue' });
    expect(read('DEL', { CNI_NETNS: '' })).to.include({ containerId: 'c1' }); // of a sandbox that has lost its namespace
  });

  const absent: { command: string; names: string[] }[] = [
    { command: 'ADD', names: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME'] },
    { command: 'DEL', names: ['CNI_CONTAINERID', 'CNI_IFNAME'] },
    { command: 'CHECK', names: ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME'] },
    { command: 'GC', names: ['CNI_PATH'] },
  ];
  for (const { command, names } of absent) {
    it(`names all variables of ${command} that are absent or empty`, () => {
      for (const value of [undefined, '']) {
        const { code, message } = refusalOf(command, Object.fromEntries(names.map((name) => [name, value])), {});
        expect(code).to.equal(4);
        for (const name of names) expect(message).to.include(`${name} is absent`);
      }
    });
  }

  const argsOf = (more: string) => ({ env: { CNI_ARGS: `K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;${more}` } });
  const refusals: [name: string, given: Given, code: number, says: string[]][] = [
    ['without a command', { env: { CNI_COMMAND: undefined } }, 4, ['CNI_COMMAND is absent', ...CNI_COMMANDS]],
    ['with an unknown command', { command: 'add' }, 4, ['CNI_COMMAND is "add"']],
    ['with an invalid container ID', { env: { CNI_CONTAINERID: '../c' } }, 4, ['CNI_CONTAINERID', '../c']],
    ['with a long interface name', { env: { CNI_IFNAME: 'abcdefghijklmnop' } }, 4, ['CNI_IFNAME', '15']],
    ['with a slash in the interface name', { env: { CNI_IFNAME: 'a/b' } }, 4, ['CNI_IFNAME', 'a/b']],
    ['with an interface named ..', { env: { CNI_IFNAME: '..' } }, 4, ['CNI_IFNAME']],
    ['with CNI_ARGS without =', { env: { CNI_ARGS: 'K8S_POD_NAME' } }, 4, ['CNI_ARGS', '"K8S_POD_NAME"']],
    ['without a pod', { env: { CNI_ARGS: '' } }, 4, ['CNI_ARGS', 'K8S_POD_NAMESPACE and K8S_POD_NAME']],
    ['without the namespace of the pod', { env: { CNI_ARGS: 'K8S_POD_NAME=a' } }, 4, ['K8S_POD_NAMESPACE']],
    ['with two pod names', argsOf('K8S_POD_NAME=c'), 4, ['K8S_POD_NAME', '"b"', '"c"']],
    ['with two invalid variables', { env: { CNI_ARGS: 'x', CNI_IFNAME: '' } }, 4, ['CNI_ARGS', 'CNI_IFNAME']],
    ['with a config that is not JSON', { config: '{' }, 6, ['stdin', 'not JSON']],
    ['with an empty config', { config: '' }, 6, ['stdin']],
    ['with a config that is a list', { config: '[]' }, 6, ['a list']],
    ['for DEL with a config that is not JSON', { command: 'DEL', config: 'x' }, 6, ['not JSON']],
    ['without a CNI version', { config: { cniVersion: undefined } }, 1, ['absent', '0.1.0', '1.1.0']],
    ['without a network name', { config: { name: undefined } }, 7, ['name: absent']],
    ['with an invalid network name', { config: { name: 'a/b' } }, 7, ['name: "a/b"']],
    ['without ipam', { config: { ipam: undefined } }, 7, ['ipam.type: absent']],
    ['for another IPAM plugin', { config: { ipam: { type: 'static' } } }, 7, ['ipam.type: "static"']],
    [
      'with an invalid route',
      { config: { ipam: { type: 'holdfast', routes: [{}] } } },
      7,
      ['ipam.routes[0].dst: absent'],
    ],
    ['with ips that are not a list', { config: { runtimeConfig: { ips: 'x' } } }, 7, ['runtimeConfig.ips: "x"']],
    ['with an ip that is a number', { config: { runtimeConfig: { ips: [1] } } }, 7, ['runtimeConfig.ips[0]: 1']],
    [
      'with an ip that is not an address',
      { config: { runtimeConfig: { ips: ['10.0.0.1', '010.0.0.1'] } } },
      7,
      ['runtimeConfig.ips[1]', '"010.0.0.1"'],
    ],
    [
      'with two addresses of one family',
      { config: { args: { cni: { ips: ['10.0.0.1/24', '10.0.0.2/24'] } } } },
      7,
      ['args.cni.ips[1]', '10.0.0.2/24', 'second IPv4'],
    ],
    ['with an invalid IP in CNI_ARGS', argsOf('IP=10.0.0.256'), 4, ['CNI_ARGS: IP[0]', '10.0.0.256']],
    ['with an invalid MAC', { config: { runtimeConfig: { mac: '02:00' } } }, 7, ['runtimeConfig.mac', '"02:00"']],
    ['with args that are not an object', { config: { args: 1 } }, 7, ['args: 1']],
    ['for CHECK without a result', { command: 'CHECK' }, 7, ['prevResult']],
    [
      'for CHECK with an invalid address',
      { command: 'CHECK', config: { prevResult: { ips: [{ address: 'x' }] } } },
      7,
      ['prevResult.ips[0].address', '"x"'],
    ],
    [
      'for GC with an invalid list',
      { command: 'GC', config: { cniVersion: '1.1.0', 'cni.dev/valid-attachments': [{ containerID: 'a' }] } },
      7,
      ['cni.dev/valid-attachments[0]'],
    ],
  ];
  for (const [name, { command = 'ADD', env = {}, config = {} }, code, says] of refusals) {
    it(`refuses a request ${name}`, () => {
      const refusal = refusalOf(command, env, config);
      expect(refusal.code, refusal.message).to.equal(code);
      for (const words of says) expect(refusal.message).to.include(words);
    });
  }

  it('accepts a DEL with a config that would be refused for an ADD', () => {
    const odd = { name: '', ipam: { type: 'static' }, runtimeConfig: { ips: 'x' }, prevResult: 1 };
    expect(read('DEL', { CNI_ARGS: 'odd' }, odd)).to.include({ command: 'DEL', containerId: 'c1' });
  });

  it('returns requested addresses with or without prefix length, IPv4 first', () => {
    expect(requestedIn({ runtimeConfig: { ips: ['fd00::5/64', '10.0.0.5'] } })).to.deep.equal(['10.0.0.5', 'fd00::5']);
    expect(requestedIn({ args: { cni: { ips: ['10.0.0.5/24'] } } })).to.deep.equal(['10.0.0.5']);
    expect(requestedIn({}, { CNI_ARGS: 'K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;IP=10.0.0.5/24,fd00::5' })).to.deep.equal([
      '10.0.0.5',
      'fd00::5',
    ]);
  });

  it('reads requested addresses from three places, of which the newest counts', () => {
    const env = { CNI_ARGS: 'K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;IP=10.0.0.1;MAC=02-00-00-00-00-0A' };
    const args = { cni: { ips: ['10.0.0.2'] } };
    expect(requestedIn({ args, runtimeConfig: { ips: ['10.0.0.3'] } }, env)).to.deep.equal(['10.0.0.3']);
    expect(requestedIn({ args, runtimeConfig: { ips: [] } }, env)).to.deep.equal(['10.0.0.2']);
    expect(requestedIn({ args: { cni: null }, runtimeConfig: null }, env)).to.deep.equal(['10.0.0.1']);
    expect(read('ADD', env).mac).to.equal('02:00:00:00:00:0a');
    expect(read('ADD', env, { runtimeConfig: { mac: '02:00:00:00:00:0B' } }).mac).to.equal('02:00:00:00:00:0b');
  });

  it('returns for a CHECK only the addresses of its interface', () => {
    const interfaces = [{ name: 'br1' }, { name: 'net1', sandbox: '/run/netns/p1' }, { name: 'net2', sandbox: 'x' }];
    const ips = [
      { version: '4', interface: 1, address: '10.0.0.5/24' },
      { version: '4', interface: 2, address: '10.0.1.5/24' },
      { version: '6', address: 'fd00::5/64' },
    ];
    const { addresses } = read('CHECK', {}, { cniVersion: '0.4.0', prevResult: { interfaces, ips, dns: {} } });
    expect(addresses.map(formatAddress)).to.deep.equal(['10.0.0.5', 'fd00::5']);
  });

  for (const [name, prevResult] of Object.entries(PREV_RESULTS)) {
    it(`finds the addresses of the interface in the result of ${name}`, () => {
      const { addresses } = read('CHECK', {}, { cniVersion: prevResult.cniVersion, prevResult });
      expect(addresses.map(formatAddress)).to.deep.equal(['10.0.0.5', 'fd00::5']);
    });
  }

  it('reads each form of a MAC address that Multus passes on', () => {
    const infiniband = '80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:1b:6b:4f';
    for (const mac of ['0200.0000.000A', '02-00-00-00-00-0a', '02:00:00:00:00:0A'])
      expect(read('ADD', {}, { runtimeConfig: { mac } }).mac).to.equal('02:00:00:00:00:0a');
    expect(read('ADD', {}, { runtimeConfig: { mac: infiniband.toUpperCase() } }).mac).to.equal(infiniband);
  });

  it('distinguishes a GC without a list of attachments from one with an empty list', () => {
    const gc = (config: object) => read('GC', {}, { cniVersion: '1.1.0', ...config }).valid;
    expect(gc({})).to.equal(undefined);
    expect(gc({ 'cni.dev/valid-attachments': [] })).to.deep.equal(new Set());
    // libcni's form of an empty list, which CRI-O sends for a network without pods
    expect(gc({ 'cni.dev/valid-attachments': null, 'cni.dev/attachments': null })).to.deep.equal(new Set());
    const element = { containerID: 'c2', ifname: 'net1' };
    expect(gc({ 'cni.dev/valid-attachments': [element] })).to.deep.equal(new Set(['c2 net1']));
    expect(gc({ 'cni.dev/attachments': [element] })).to.deep.equal(new Set(['c2 net1']));
  });
});
