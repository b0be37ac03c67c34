import { COMMON_SETTINGS, type CommonConfig, IPAM_SETTINGS } from './config.js';
import { type Setting, type Settings, duration, parseObjectName, parseText } from './setting.js';

/** The configuration of a responder, which serves the guests of one pool and needs no leader election. */
export interface ResponderConfig extends Omit<
  CommonConfig,
  'leaderElect' | 'featureGates' | 'featureGatesFromKubevirt'
> {
  /** The AddressPool whose guests are served. */
  readonly pool: string;
  /** The address space of the pool. */
  readonly addressSpace: string;
  /** The name of the pod, which is that of the claim with the responder's addresses. */
  readonly podName: string;
  /** The Unix socket of holdfast-packets. */
  readonly packetSocket: string;
  /** The interface that is attached to the network of the pool. */
  readonly guestInterface: string;
  /** How long the table may be used while the API server is away. */
  readonly maxStalenessMs: number;
}

const {
  leaderElect: _leaderElect,
  featureGates: _featureGates,
  featureGatesFromKubevirt: _fromKubevirt,
  ...COMMON
} = COMMON_SETTINGS;

/** Below it, watches cannot show in time that they are current. */
export const MIN_RESPONDER_STALENESS_MS = 5_000;

/** The name of the pod of a process, which its manifest sets. */
export const POD_NAME: Omit<Setting<string | undefined>, 'defaultValue'> & { parse: (text: string) => string } = {
  flag: 'pod-name',
  placeholder: 'name',
  description: 'name of the pod of this process',
  defaultText: 'none',
  alternativeVariable: 'POD_NAME',
  parse: parseObjectName,
};

export const RESPONDER_SETTINGS: Settings<ResponderConfig> = {
  ...COMMON,
  maxStalenessMs: { ...IPAM_SETTINGS.maxStalenessMs, parse: duration(MIN_RESPONDER_STALENESS_MS, 3_600_000) },
  pool: {
    flag: 'pool',
    placeholder: 'name',
    description: 'AddressPool whose guests are served',
    defaultValue: '',
    defaultText: 'none, required',
    isRequired: true,
    parse: parseObjectName,
  },
  addressSpace: {
    flag: 'address-space',
    placeholder: 'name',
    description: 'address space of the AddressPool, whose leases are watched',
    defaultValue: '',
    defaultText: 'none, required',
    isRequired: true,
    parse: parseText,
  },
  podName: { ...POD_NAME, isRequired: true, defaultValue: '' },
  packetSocket: {
    flag: 'packet-socket',
    placeholder: 'file',
    description: 'Unix socket of holdfast-packets, which sends and receives packets',
    defaultValue: '/run/holdfast-packets/packets.sock',
    parse: parseText,
  },
  guestInterface: {
    flag: 'guest-interface',
    placeholder: 'name',
    description: 'interface of the pod on the network of the guests',
    defaultValue: 'guest0',
    parse: parseText,
  },
};
