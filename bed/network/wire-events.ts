// Replies and events of netbed: the names of fields are part of its protocol.

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
  /** Second replies to one request, as from two holders of an address. */
  readonly duplicates: number;
  /** Series of requests without a reply; `atMs` is relative to the first request. */
  readonly lossRuns: readonly { readonly atMs: number; readonly count: number }[];
  /** Undefined if there was no reply. */
  readonly rttMs?: { readonly p50: number; readonly p95: number; readonly max: number };
  /** The last error of sending. */
  readonly error?: string;
}

/** An ARP or NDP message, or one that a kernel sends when an interface comes up. */
export interface ObservedFrame {
  readonly kind:
    | 'arp-request'
    | 'arp-reply'
    | 'ndp-solicitation'
    | 'ndp-advertisement'
    | 'router-solicitation'
    | 'multicast-report';
  /** The address that the sender claims for `mac`, if any. */
  readonly ip?: string;
  readonly mac: string;
  /** The address that the sender asks for. */
  readonly asks?: string;
  /** Sent without a request. */
  readonly gratuitous: boolean;
  /** The sender checks whether the address is free. */
  readonly probe: boolean;
  /** Sent by the interface that is watched. */
  readonly outgoing: boolean;
}

/** An entry of a neighbour table after a change. */
export interface NeighbourEntry {
  readonly ip: string;
  /** Empty until a reply has arrived. */
  readonly mac: string;
  readonly state: string;
  readonly deleted: boolean;
}

/** The port at which a bridge has last seen a MAC address, after a change. */
export interface ForwardingEntry {
  readonly mac: string;
  /** Name of the port's interface. */
  readonly port: string;
}

export interface WireEvent {
  /** Unix time in milliseconds. */
  readonly atMs: number;
  readonly frame?: ObservedFrame;
  readonly neighbour?: NeighbourEntry;
  readonly learnt?: ForwardingEntry;
}

export interface InterfaceState {
  readonly name: string;
  /** The kernel's name of the kind: veth, bridge, macvlan. */
  readonly kind: string;
  readonly mac: string;
  readonly up: boolean;
  readonly mtu: number;
  readonly addresses: readonly AddressState[];
}

export interface AddressState {
  /** With prefix length. */
  readonly address: string;
  /** Duplicate address detection is not finished. */
  readonly tentative: boolean;
  /** Duplicate address detection has found another holder. */
  readonly dadFailed: boolean;
  readonly linkLocal: boolean;
}

export interface NamespaceContents {
  readonly netns: string;
  /** The node of a pod. */
  readonly node?: string;
  /** Names, without lo. */
  readonly interfaces: readonly string[];
}
