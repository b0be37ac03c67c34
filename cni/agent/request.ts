import { describeValue, isRecord, asRecord } from '../../api/json.js';
import { pluginFingerprint } from '../../api/plugin-fingerprint.js';
import { type Address, parseAddressOrPrefix } from '../../addressing/address/address.js';
import { messageOf } from '../../kube/errors.js';
import { CniCode, CniError } from './cni-error.js';
import { type CniEnvironment, readEnvironment } from './environment.js';
import type { PluginRequest } from './plugin-protocol.js';
import {
  type CniVersion,
  type JsonObject,
  invalidConfig,
  listAt,
  objectAt,
  parseConfig,
  readStdinConfig,
} from './stdin-config.js';
import type { PodRef } from './pods/node-pods.js';
import { runtimeAddresses, requestedMac } from './runtime-config.js';
import { type ResultExtras, readResultExtras } from './result.js';

/** Identifies one interface of one sandbox. */
export interface InterfaceRef {
  readonly containerId: string;
  readonly interfaceName: string;
}

export interface AddRequest extends InterfaceRef {
  readonly command: 'ADD';
  readonly version: CniVersion;
  readonly network: string;
  readonly pod: PodRef;
  /** At most one per family. */
  readonly requested: readonly Address[];
  /** Lower case, with colons. */
  readonly mac: string | undefined;
  /** Fingerprint of the config, compared with that of the NAD; undefined if the config is nested too deeply. */
  readonly fingerprint: string | undefined;
  /** Routes and DNS of the config, for the result. */
  readonly extras: ResultExtras;
}

export interface DelRequest extends InterfaceRef {
  readonly command: 'DEL';
}

export interface CheckRequest extends InterfaceRef {
  readonly command: 'CHECK';
  readonly network: string;
  readonly pod: PodRef;
  /** The addresses of the interface according to the runtime. */
  readonly addresses: readonly Address[];
}

export interface GcRequest {
  readonly command: 'GC';
  readonly network: string;
  /** Keys of {@link sandboxInterfaceKey} that are still in use; undefined if the runtime sent no list. */
  readonly valid: ReadonlySet<string> | undefined;
}

export interface StatusRequest {
  readonly command: 'STATUS';
  readonly network: string;
}

export interface VersionRequest {
  readonly command: 'VERSION';
  /** The CNI version of the runtime. */
  readonly version: string;
}

export type CniRequest = AddRequest | DelRequest | CheckRequest | GcRequest | StatusRequest | VersionRequest;

/** Returns the key of an interface of a sandbox. */
export function sandboxInterfaceKey({ containerId, interfaceName }: InterfaceRef): string {
  return `${containerId} ${interfaceName}`;
}

/**
 * Reads a request of any verb and version. Only what the verb needs is validated, because a DEL must not fail with the error of its ADD.
 * @throws {CniError} 1, 4, 6 or 7
 */
export function readCniRequest(ask: PluginRequest): CniRequest {
  const environment = readEnvironment(ask.env);
  const { command, containerId, interfaceName } = environment;
  switch (command) {
    case 'ADD':
      return readAdd(environment, ask.config);
    case 'DEL':
      parseConfig(ask.config);
      return { command, containerId, interfaceName };
    case 'CHECK':
      return readCheck(environment, ask.config);
    case 'GC': {
      const { name, all } = readStdinConfig(command, ask.config);
      return { command, network: name, valid: readValidAttachments(all) };
    }
    case 'STATUS':
      return { command, network: readStdinConfig(command, ask.config).name };
    case 'VERSION': {
      const { cniVersion } = parseConfig(ask.config);
      return { command, version: typeof cniVersion === 'string' && cniVersion !== '' ? cniVersion : '1.1.0' };
    }
  }
}

function readAdd({ containerId, interfaceName, args }: CniEnvironment, text: string): AddRequest {
  const pod = readPod(args);
  const { version, name, ipam, all } = readStdinConfig('ADD', text);
  return {
    command: 'ADD',
    version,
    network: name,
    containerId,
    interfaceName,
    pod,
    requested: runtimeAddresses(all, args),
    mac: requestedMac(all, args),
    fingerprint: pluginFingerprint(all),
    extras: readResultExtras(ipam),
  };
}

function readCheck({ containerId, interfaceName, args }: CniEnvironment, text: string): CheckRequest {
  const pod = readPod(args);
  const { name, all } = readStdinConfig('CHECK', text);
  const addresses = readPrevResult(all, interfaceName);
  return { command: 'CHECK', network: name, containerId, interfaceName, pod, addresses };
}

function readPod(args: ReadonlyMap<string, string>): PodRef {
  const [namespace, name, uid] = (['NAMESPACE', 'NAME', 'UID'] as const).map((key) => args.get(`K8S_POD_${key}`));
  if (namespace !== undefined && name !== undefined) return { namespace, name, ...(uid !== undefined && { uid }) };
  const absent = ['K8S_POD_NAMESPACE', 'K8S_POD_NAME'].filter((key) => !args.has(key));
  throw new CniError(
    CniCode.InvalidEnvironment,
    `CNI_ARGS: ${absent.join(' and ')} absent: Holdfast serves only Kubernetes pods, whose runtime sets them`,
  );
}

/** Returns the addresses of the interface, without those that belong to another one. */
function readPrevResult(config: JsonObject, interfaceName: string): Address[] {
  if (config.prevResult === undefined || config.prevResult === null) {
    throw invalidConfig('prevResult', 'it is absent: CHECK compares it with the leases');
  }
  const result = objectAt(config, 'prevResult');
  const interfaces = listAt(result, 'interfaces', 'prevResult.interfaces');
  return listAt(result, 'ips', 'prevResult.ips').flatMap((ip, index) => {
    const path = `prevResult.ips[${index}]`;
    if (!isRecord(ip)) throw invalidConfig(path, `${describeValue(ip)} is not an object`);
    const owner = typeof ip.interface === 'number' ? interfaces[ip.interface] : undefined;
    if (isRecord(owner) && owner.name !== interfaceName) return [];
    if (typeof ip.address !== 'string')
      throw invalidConfig(`${path}.address`, `${describeValue(ip.address)} is not an address`);
    try {
      return [parseAddressOrPrefix(ip.address).address];
    } catch (error) {
      throw invalidConfig(`${path}.address`, messageOf(error));
    }
  });
}

/**
 * Returns undefined without a key, because nothing may be collected then. libcni writes an empty list as null. Runtimes used the second key before
 * CNI 1.1 was final.
 */
function readValidAttachments(config: JsonObject): ReadonlySet<string> | undefined {
  const key = ['cni.dev/valid-attachments', 'cni.dev/attachments'].find((each) => config[each] !== undefined);
  if (key === undefined) return undefined;
  const keys = listAt(config, key).map((element, index) => {
    const { containerID: containerId, ifname: interfaceName } = asRecord(element);
    if (typeof containerId === 'string' && typeof interfaceName === 'string')
      return sandboxInterfaceKey({ containerId, interfaceName });
    throw invalidConfig(`${key}[${index}]`, 'it is not {"containerID": "…", "ifname": "…"}');
  });
  return new Set(keys);
}
