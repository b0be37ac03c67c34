import { expect } from 'chai';
import { pluginFingerprint } from '../../api/plugin-fingerprint.js';
import { NETWORK_CONFIG, pluginRequest } from './testing/cni-requests.js';
import { formatAddress } from '../../ipam/core/address.js';
import { CniError } from './cni-error.js';
import { COMMANDS } from './environment.js';
import { type CniRequest, readCniRequest } from './request.js';

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

describe('reading a CNI request', () => {
  it('returns everything that an ADD needs', () => {
    expect(read('ADD')).to.deep.equal({
      command: 'ADD',
      version: '1.0.0',
      network: 'blue',
      containerId: 'c1',
      interfaceName: 'net1',
      pod: { namespace: 'vms', name: 'p1', uid: 'p1-uid' },
      requested: [],
      mac: undefined,
      fingerprint: pluginFingerprint(NETWORK_CONFIG),
      extras: { routes: [], dns: {} },
    });
  });

  it('accepts an ADD without the UID of the pod', () => {
    const { pod } = read('ADD', { CNI_ARGS: 'K8S_POD_NAMESPACE=vms;K8S_POD_NAME=p1;K8S_POD_UID=;;' });
    expect(pod).to.deep.equal({ namespace: 'vms', name: 'p1' });
  });

  const versions: { command: string; good: string[]; bad: string[] }[] = [
    { command: 'ADD', good: ['0.3.1', '0.4.0', '1.0.0', '1.1.0'], bad: ['0.1.0', '0.3.0', '1.2.0', ''] },
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

  const refusals: {
    name: string;
    command?: string;
    env?: Env;
    config?: object | string;
    code: number;
    says: string[];
  }[] = [
    {
      name: 'a request without a command',
      env: { CNI_COMMAND: undefined },
      code: 4,
      says: ['CNI_COMMAND is absent', ...COMMANDS],
    },
    { name: 'a request with an unknown command', command: 'add', code: 4, says: ['CNI_COMMAND is "add"'] },
    {
      name: 'a container ID with invalid characters',
      env: { CNI_CONTAINERID: '../c' },
      code: 4,
      says: ['CNI_CONTAINERID', '../c'],
    },
    { name: 'a long interface name', env: { CNI_IFNAME: 'abcdefghijklmnop' }, code: 4, says: ['CNI_IFNAME', '15'] },
    { name: 'an interface name with a slash', env: { CNI_IFNAME: 'a/b' }, code: 4, says: ['CNI_IFNAME', 'a/b'] },
    { name: 'an interface named ..', env: { CNI_IFNAME: '..' }, code: 4, says: ['CNI_IFNAME'] },
    { name: 'CNI_ARGS without =', env: { CNI_ARGS: 'K8S_POD_NAME' }, code: 4, says: ['CNI_ARGS', '"K8S_POD_NAME"'] },
    {
      name: 'an ADD without a pod',
      env: { CNI_ARGS: '' },
      code: 4,
      says: ['CNI_ARGS', 'K8S_POD_NAMESPACE and K8S_POD_NAME'],
    },
    { name: 'a pod without its namespace', env: { CNI_ARGS: 'K8S_POD_NAME=a' }, code: 4, says: ['K8S_POD_NAMESPACE'] },
    {
      name: 'an ADD with two pod names',
      env: { CNI_ARGS: 'K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;K8S_POD_NAME=c' },
      code: 4,
      says: ['K8S_POD_NAME', '"b"', '"c"'],
    },
    {
      name: 'two invalid variables, and names both',
      env: { CNI_ARGS: 'x', CNI_IFNAME: '' },
      code: 4,
      says: ['CNI_ARGS', 'CNI_IFNAME'],
    },
    { name: 'a config that is not JSON', config: '{', code: 6, says: ['stdin', 'not JSON'] },
    { name: 'an empty config', config: '', code: 6, says: ['stdin'] },
    { name: 'a config that is a list', config: '[]', code: 6, says: ['a list'] },
    { name: 'a DEL with a config that is not JSON', command: 'DEL', config: 'x', code: 6, says: ['not JSON'] },
    {
      name: 'a config without a version',
      config: { cniVersion: undefined },
      code: 1,
      says: ['absent', '0.1.0', '1.1.0'],
    },
    { name: 'a config without a network name', config: { name: undefined }, code: 7, says: ['name: absent'] },
    { name: 'an invalid network name', config: { name: 'a/b' }, code: 7, says: ['name: "a/b"'] },
    { name: 'a config without ipam', config: { ipam: undefined }, code: 7, says: ['ipam.type: absent'] },
    {
      name: 'a config for another IPAM plugin',
      config: { ipam: { type: 'static' } },
      code: 7,
      says: ['ipam.type: "static"'],
    },
    {
      name: 'ips that are not a list',
      config: { runtimeConfig: { ips: 'x' } },
      code: 7,
      says: ['runtimeConfig.ips: "x"'],
    },
    {
      name: 'an ip that is a number',
      config: { runtimeConfig: { ips: [1] } },
      code: 7,
      says: ['runtimeConfig.ips[0]: 1'],
    },
    {
      name: 'an ip that is not an address',
      config: { runtimeConfig: { ips: ['10.0.0.1', '010.0.0.1'] } },
      code: 7,
      says: ['runtimeConfig.ips[1]', '"010.0.0.1"'],
    },
    {
      name: 'two addresses of one family',
      config: { args: { cni: { ips: ['10.0.0.1/24', '10.0.0.2/24'] } } },
      code: 7,
      says: ['args.cni.ips[1]', '10.0.0.2/24', 'second IPv4'],
    },
    {
      name: 'an invalid IP in CNI_ARGS',
      env: { CNI_ARGS: 'K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;IP=10.0.0.256' },
      code: 4,
      says: ['CNI_ARGS: IP[0]', '10.0.0.256'],
    },
    {
      name: 'an invalid MAC address',
      config: { runtimeConfig: { mac: '02:00' } },
      code: 7,
      says: ['runtimeConfig.mac', '"02:00"'],
    },
    { name: 'args that are not an object', config: { args: 1 }, code: 7, says: ['args: 1'] },
    { name: 'a CHECK without a result', command: 'CHECK', code: 7, says: ['prevResult'] },
    {
      name: 'a CHECK whose result has an invalid address',
      command: 'CHECK',
      config: { prevResult: { ips: [{ address: 'x' }] } },
      code: 7,
      says: ['prevResult.ips[0].address', '"x"'],
    },
    {
      name: 'a GC with an invalid list',
      command: 'GC',
      config: { cniVersion: '1.1.0', 'cni.dev/valid-attachments': [{ containerID: 'a' }] },
      code: 7,
      says: ['cni.dev/valid-attachments[0]'],
    },
  ];
  for (const { name, command = 'ADD', env = {}, config = {}, code, says } of refusals) {
    it(`refuses ${name}`, () => {
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

  it('distinguishes a GC without a list of attachments from one with an empty list', () => {
    const gc = (config: object) => read('GC', {}, { cniVersion: '1.1.0', ...config }).valid;
    expect(gc({})).to.equal(undefined);
    expect(gc({ 'cni.dev/valid-attachments': [] })).to.deep.equal(new Set());
    const element = { containerID: 'c2', ifname: 'net1' };
    expect(gc({ 'cni.dev/valid-attachments': [element] })).to.deep.equal(new Set(['c2 net1']));
    expect(gc({ 'cni.dev/attachments': [element] })).to.deep.equal(new Set(['c2 net1']));
  });
});
