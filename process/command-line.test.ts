import { expect } from 'chai';
import { type Environment, readCommandLine, ALL_SETTINGS } from './command-line.js';
import type { AgentConfig } from './config/agent-config.js';
import { UsageError } from './read-arguments.js';
import { type Setting, variableOf } from './config/setting.js';

const PROCESSES = 'controller, webhook, ipam, agent, install-plugin, capacity, guest, responder, all';
const SETTINGS = Object.values<Setting<unknown>>(ALL_SETTINGS);

function configOf(args: string[], environment: Environment = {}) {
  const request = readCommandLine(args, environment);
  if (request?.process !== 'all') throw new TypeError('the tests read `holdfast all`');
  return request.config;
}

function printed(args: string[]): string {
  let text = '';
  const request = readCommandLine(args, {}, { writeOut: (part) => (text += part) });
  expect(request).to.equal(undefined);
  return text;
}

describe('readCommandLine', () => {
  it('returns defaults for absent flags', () => {
    expect(configOf(['all'])).to.deep.equal({
      kubeconfig: undefined,
      namespace: 'holdfast-system',
      healthBindAddress: ':8081',
      metricsBindAddress: ':8443',
      metricsSecure: true,
      metricsCertDir: undefined,
      metricsAudiences: [],
      leaderElect: false,
      featureGates: {
        persistentIPs: true,
        primaryUserDefinedNetwork: false,
        nodeBlocks: false,
        publishCapacity: true,
        stickyMAC: true,
      },
      featureGatesFromKubevirt: false,
      logLevel: 'info',
      workers: 64,
      maxClaimsPerVm: 32,
      webhookBindAddress: ':9443',
      webhookCertDir: undefined,
      tlsMinVersion: 'TLSv1.3',
      clientCaFile: undefined,
      clientAllowedNames: [],
      webhookConfiguration: 'holdfast-webhook',
      webhookCapacityConfiguration: 'holdfast-webhook-capacity',
      webhookServiceName: 'holdfast-webhook',
      webhookUrl: undefined,
      claimWorkers: 64,
      maxDerivedPoolMetrics: 500,
      maxStalenessMs: 30_000,
      collectAfterMs: 60_000,
      agentNamespace: 'holdfast-agents',
      defaultNetworkNadNamespace: 'ovn-kubernetes',
      unhonouredAfterMs: 60_000,
      poolStatusIntervalMs: 60_000,
      restoreWaitMs: 86_400_000,
      globalNamespaces: ['default'],
      capacityNamespaces: [],
      enforceAddressOwnership: false,
      maxDerivedPools: 64,
      blockMinFree: 8,
      auditLog: undefined,
      auditMaxFiles: 5,
      auditMaxMiB: 100,
      blockMaxFree: 72,
      excessReleaseDelayMs: 180_000,
      guestGraceMs: 60_000,
      maxResponderPools: 32,
      podName: undefined,
      responderImage: undefined,
      responderTemplate: {},
      validationBindAddress: ':9444',
      validationCertDir: undefined,
      validationConfiguration: 'holdfast-ipam',
      validationServiceName: 'holdfast-ipam',
      validationUrl: undefined,
    });
  });

  it('reads the allowed names of clients', () => {
    const args = ['all', '--client-ca-file=/etc/ca.crt', '--client-allowed-names=kube-apiserver, front'];
    const clientAllowedNames = ['kube-apiserver', 'front'];
    expect(configOf(args)).to.deep.include({ clientCaFile: '/etc/ca.crt', clientAllowedNames });
  });

  for (const process of ['webhook', 'ipam', 'all']) {
    it(`rejects names of clients without a CA for them: ${process}`, () => {
      expect(() => readCommandLine([process, '--client-allowed-names=kube-apiserver'], {}))
        .to.throw(UsageError)
        .with.property('message')
        .that.includes('--client-ca-file');
    });
  }

  it('freezes the configuration', () => {
    expect(configOf(['all'])).to.be.frozen;
    expect(configOf(['all', '--feature-gates=PersistentIPs=false']).featureGates).to.be.frozen;
  });

  it('accepts only the flags of the process', () => {
    expect(readCommandLine(['controller', '--workers', '3'], {})?.config).to.include({ workers: 3 });
    expect(() => readCommandLine(['webhook', '--workers', '3'], {})).to.throw(UsageError, '--workers');
    const args = ['controller', '--webhook-cert-dir', 'x'];
    expect(() => readCommandLine(args, {})).to.throw(UsageError, '--webhook-cert-dir');
  });

  it('reads a variable if the flag is absent, and the flag if both are set', () => {
    const environment = { HOLDFAST_LOG_LEVEL: 'debug', HOLDFAST_WORKERS: '7' };
    expect(configOf(['all', '--log-level=warn'], environment)).to.include({ logLevel: 'warn', workers: 7 });
  });

  it('uses the namespace of the pod unless another one is set', () => {
    expect(configOf(['all'], { POD_NAMESPACE: 'pods' }).namespace).to.equal('pods');
    expect(configOf(['all'], { POD_NAMESPACE: 'pods', HOLDFAST_NAMESPACE: 'ours' }).namespace).to.equal('ours');
  });

  it('uses the node of the pod for an agent unless another one is set', () => {
    const nodeOf = (args: string[], environment: Environment) =>
      readCommandLine(['agent', ...args], environment)?.config as { nodeName: string };
    expect(nodeOf([], { NODE_NAME: 'node-1' }).nodeName).to.equal('node-1');
    expect(nodeOf(['--node-name=node-2'], { NODE_NAME: 'node-1' }).nodeName).to.equal('node-2');
  });

  it('allows one address for probes and metrics over HTTP', () => {
    const args = ['all', '--health-bind-address=:1', '--metrics-bind-address=:1', '--metrics-secure=false'];
    expect(configOf(args).metricsBindAddress).to.equal(':1');
  });

  it('reads the plugins that the agent requires, with alternatives', () => {
    const requiredBy = (...args: string[]) =>
      (readCommandLine(['agent', '--node-name=a', ...args], {})!.config as AgentConfig).cniRequiredPlugins;
    expect(requiredBy()).to.deep.equal([['multus', 'multus-shim'], ['bridge']]);
    expect(requiredBy('--cni-required-plugins=multus, macvlan/sriov')).to.deep.equal([
      ['multus'],
      ['macvlan', 'sriov'],
    ]);
    expect(requiredBy('--cni-required-plugins=')).to.deep.equal([]);
    for (const invalid of ['multus,', '../bridge', '/opt/cni/bin/bridge', 'multus//bridge']) {
      expect(() => requiredBy(`--cni-required-plugins=${invalid}`)).to.throw(UsageError, 'must be file names');
    }
  });

  it('requires the directory in which install-plugin installs', () => {
    const args = ['install-plugin', '--cni-bin-dir=/host'];
    const request = readCommandLine(args, { HOLDFAST_CNI_BIN_HOST_DIR: '/opt/cni/bin' });
    expect(request?.config).to.include({ cniBinDir: '/host', cniBinHostDir: '/opt/cni/bin' });
    expect(() => readCommandLine(['install-plugin'], {})).to.throw(UsageError, '--cni-bin-dir is required');
  });

  it('treats an empty variable as absent', () => {
    expect(configOf(['all'], { HOLDFAST_WORKERS: '' }).workers).to.equal(64);
  });

  it('ignores the variables that Kubernetes sets for a Service named holdfast', () => {
    const environment = { HOLDFAST_WEBHOOK_PORT: 'tcp://10.0.0.1:443' };
    expect(configOf(['all'], environment).webhookBindAddress).to.equal(':9443');
  });

  it('reads a boolean flag with and without a value', () => {
    expect(configOf(['all', '--leader-elect']).leaderElect).to.equal(true);
    expect(configOf(['all', '--leader-elect=true']).leaderElect).to.equal(true);
    expect(configOf(['all', '--leader-elect=false'], { HOLDFAST_LEADER_ELECT: 'true' }).leaderElect).to.equal(false);
  });

  const refusals: { name: string; args: string[]; environment?: Environment; expect: string[] }[] = [
    { name: 'no process', args: [], expect: ['no process is given', PROCESSES] },
    { name: 'an unknown process', args: ['agents'], expect: ['"agents"', PROCESSES] },
    { name: 'an agent without its node', args: ['agent'], expect: ['--node-name is required', 'NODE_NAME'] },
    { name: 'an agent that elects', args: ['agent', '--leader-elect'], expect: ['--leader-elect'] },
    { name: 'an unknown flag', args: ['all', '--worker=1'], expect: ['--worker', '--workers'] },
    { name: 'an argument too many', args: ['all', 'more'], expect: ['too many arguments'] },
    { name: 'a flag without its value', args: ['all', '--workers'], expect: ['--workers'] },
    { name: 'zero workers', args: ['all', '--workers=0'], expect: ['--workers: invalid value "0"', 'from 1 to 256'] },
    {
      name: 'a value that is not a number',
      args: ['all', '--workers=1e2'],
      expect: ['--workers: invalid value "1e2"', 'whole number'],
    },
    {
      name: 'an unknown level',
      args: ['all', '--log-level=loud'],
      expect: ['--log-level: invalid value "loud"', 'debug, info, warn'],
    },
    {
      name: 'a value that is not a boolean',
      args: ['all', '--leader-elect=yes'],
      expect: ['--leader-elect: invalid value "yes"', 'true or false'],
    },
    {
      name: 'an unknown gate',
      args: ['all', '--feature-gates=X=true'],
      expect: ['--feature-gates', 'unknown feature gate "X"'],
    },
    {
      name: 'a duration without unit',
      args: ['all', '--max-staleness=30'],
      expect: ['--max-staleness: invalid value "30"', 'like 500ms, 30s or 5m'],
    },
    ...['ipam', 'all'].map((process) => ({
      name: `a block-max-free below block-min-free, of ${process}`,
      args: [process, '--block-min-free=8', '--block-max-free=7'],
      expect: ['--block-max-free (7) is less than --block-min-free (8)', 'increase --block-max-free'],
    })),
    {
      name: 'a duration out of range',
      args: ['all', '--max-staleness=2h'],
      expect: ['--max-staleness: invalid value "2h"', 'from 100ms to 3600s'],
    },
    { name: 'TLS version 1.1', args: ['all', '--tls-min-version=TLSv1.1'], expect: ['"TLSv1.1"', 'TLSv1.2, TLSv1.3'] },
    {
      name: 'one address for probes and for metrics over HTTPS',
      args: ['agent', '--node-name=a', '--health-bind-address=:1', '--metrics-bind-address=:1'],
      expect: ['both :1', 'an address of their own'],
    },
    {
      name: 'a certificate for metrics over HTTP',
      args: ['all', '--metrics-secure=false', '--metrics-cert-dir=/x', '--metrics-audiences=a,b'],
      expect: ['--metrics-cert-dir and --metrics-audiences have no effect'],
    },
    {
      name: 'an empty audience',
      args: ['all', '--metrics-audiences=a,'],
      expect: ['--metrics-audiences', 'audiences'],
    },
    { name: 'a URL without TLS', args: ['all', '--webhook-url=http://x'], expect: ['--webhook-url', 'https://'] },
    { name: 'an address without port', args: ['all', '--health-bind-address=::1'], expect: ['"::1"', 'host:port'] },
    {
      name: 'an invalid name',
      args: ['all', '--namespace=A_b'],
      expect: ['--namespace: invalid value "A_b"', 'lower-case'],
    },
    {
      name: 'a name with two dots in a row, which is no DNS name',
      args: ['all', '--namespace=a..b'],
      expect: ['--namespace: invalid value "a..b"'],
    },
    { name: 'an empty path', args: ['all', '--kubeconfig='], expect: ['--kubeconfig: invalid value ""', 'empty'] },
    {
      name: 'an invalid variable, by its name',
      args: ['all'],
      environment: { HOLDFAST_WORKERS: 'many' },
      expect: ['HOLDFAST_WORKERS: invalid value "many"', 'whole number'],
    },
  ];
  for (const { name, args, environment = {}, expect: words } of refusals) {
    it(`rejects ${name}`, () => {
      for (const word of words) expect(() => readCommandLine(args, environment)).to.throw(UsageError, word);
    });
  }

  it('documents every flag and its variable with --help', () => {
    const help = printed(['all', '--help']);
    for (const setting of SETTINGS) {
      expect(help).to.include(`--${setting.flag} `);
      expect(help.replace(/\s+/g, ' ')).to.include(variableOf(setting));
    }
  });

  it('lists the processes with --help, and prints the version with --version', () => {
    expect(printed(['--help']))
      .to.include('controller')
      .and.to.include('webhook')
      .and.to.include('all');
    expect(printed(['--version'])).to.match(/^\d+\.\d+\.\d+\n$/);
  });
});
