/** What the wire reports. */

export interface PingOptions {
  readonly count?: number;
  readonly intervalMs?: number;
  /** How long to wait for the last answers; 1000 by default. */
  readonly timeoutMs?: number;
  /** Bytes of payload. */
  readonly size?: number;
}

export interface PingResult {
  readonly sent: number;
  readonly received: number;
  readonly lost: number;
  /** Second answers to one request, as from two holders of an address. */
  readonly duplicates: number;
  /** Requests in a row without an answer; `atMs` counts from the first request. */
  readonly lossRuns: readonly { readonly atMs: number; readonly count: number }[];
  /** Undefined without any answer. */
  readonly rttMs?: { readonly p50: number; readonly p95: number; readonly max: number };
  /** What sending met last. */
  readonly error?: string;
}

/** A message of ARP or NDP, or one that a kernel sends by itself when an interface comes up. */
export interface ObservedFrame {
  readonly kind:
    'arp-request' | 'arp-reply' | 'ndp-solicitation' | 'ndp-advertisement' | 'router-solicitation' | 'multicast-report';
  /** The sender claims this address, at `mac`; undefined where it claims none. */
  readonly ip?: string;
  readonly mac: string;
  /** The address that the sender asks for. */
  readonly asks?: string;
  /** Said without being asked. */
  readonly gratuitous: boolean;
  /** The sender looks whether the address it asks for is free. */
  readonly probe: boolean;
  /** Sent by the interface that is watched. */
  readonly outgoing: boolean;
}

/** An entry of a neighbour table after a change. */
export interface NeighbourEntry {
  readonly ip: string;
  /** Empty while nobody has answered. */
  readonly mac: string;
  readonly state: string;
  readonly deleted: boolean;
}

/** Where a bridge has seen a MAC address last, after that has changed. */
export interface ForwardingEntry {
  readonly mac: string;
  /** Name of its interface. */
  readonly port: string;
}

export interface WireEvent {
  /** Since the epoch. */
  readonly atMs: number;
  readonly frame?: ObservedFrame;
  readonly neighbour?: NeighbourEntry;
  readonly learnt?: ForwardingEntry;
}

export interface InterfaceState {
  readonly name: string;
  /** As the kernel calls it: veth, bridge, macvlan. */
  readonly kind: string;
  readonly mac: string;
  readonly up: boolean;
  readonly mtu: number;
  readonly addresses: readonly AddressState[];
}

export interface AddressState {
  /** With prefix length. */
  readonly address: string;
  /** Duplicate address detection goes on. */
  readonly tentative: boolean;
  /** Duplicate address detection has found another holder. */
  readonly dadFailed: boolean;
  readonly linkLocal: boolean;
}

export interface NamespaceContents {
  readonly netns: string;
  /** Of a pod. */
  readonly node?: string;
  /** Names, without lo. */
  readonly interfaces: readonly string[];
}
