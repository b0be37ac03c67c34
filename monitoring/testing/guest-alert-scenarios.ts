import type { Scenario } from './promcheck.js';

/** Series by name: those that make an alert fire, and those that do not. */
export interface AlertScenario {
  readonly fires: Scenario['series'];
  readonly isQuiet: Scenario['series'];
  /** When both are evaluated. */
  readonly at: string;
  /** When the quiet ones are evaluated instead. */
  readonly quietAt?: string;
  /** A part of the description. */
  readonly says: string;
}

/** The scenarios of the alerts about guests, their responders and their guards. */
export const GUEST_ALERT_SCENARIOS: Readonly<Record<string, AlertScenario>> = {
  HoldfastGuestMisconfigured: {
    at: '15m',
    fires: { 'holdfast_guest_misconfigured_interfaces{instance="a"}': '2x20' },
    says: '2 interfaces',
    isQuiet: { 'holdfast_guest_misconfigured_interfaces{instance="a"}': '0x10 1x3 0x10' },
  },
  HoldfastResponderTableStale: {
    at: '10m',
    quietAt: '7m',
    fires: { 'holdfast_responder_table_stale_status{pool="blue",instance="a"}': '0x5 1x10' },
    says: 'AddressPool blue',
    isQuiet: { 'holdfast_responder_table_stale_status{pool="blue",instance="a"}': '0x5 1x1 0x10' },
  },
  HoldfastResponderLosesPackets: {
    at: '10m',
    fires: { 'holdfast_responder_dropped_packets_total{pool="blue",reason="lost"}': '0x5 40x10' },
    says: 'AddressPool blue',
    isQuiet: {
      'holdfast_responder_dropped_packets_total{pool="blue",reason="lost"}': '40x20',
      'holdfast_responder_dropped_packets_total{pool="blue",reason="unknown"}': '0+100x20',
    },
  },
  HoldfastForeignDHCPServer: {
    at: '10m',
    fires: { 'holdfast_responder_observations_total{pool="blue",kind="server"}': '0x5 1x10' },
    says: 'AddressPool blue',
    isQuiet: {
      'holdfast_responder_observations_total{pool="blue",kind="server"}': '3x20',
      'holdfast_responder_observations_total{pool="blue",kind="router"}': '0+1x20',
    },
  },
  HoldfastAddressConflict: {
    at: '10m',
    fires: { 'holdfast_responder_observations_total{pool="blue",kind="conflict"}': '0x5 1x10' },
    says: 'AddressPool blue',
    isQuiet: { 'holdfast_responder_observations_total{pool="blue",kind="declined"}': '0+1x20' },
  },
  HoldfastGuardNotApplied: {
    at: '15m',
    fires: { 'holdfast_guard_ports{pool="blue",nad_namespace="",node="n1",state="failed"}': '2x20' },
    says: 'node n1',
    isQuiet: {
      'holdfast_guard_ports{pool="blue",nad_namespace="",node="n1",state="applied"}': '2x20',
      // that of a tenant
      'holdfast_guard_ports{pool="red",nad_namespace="vms",node="n1",state="failed"}': '2x20',
    },
  },
  HoldfastTrafficNotOfClaim: {
    at: '35m',
    fires: { 'holdfast_guard_dropped_packets_total{pool="blue",mode="Observe",reason="arp_sender"}': '0+5x40' },
    says: 'AddressPool blue',
    isQuiet: {
      'holdfast_guard_dropped_packets_total{pool="blue",mode="Enforce",reason="arp_sender"}': '7x40',
      'holdfast_guard_dropped_packets_total{pool="blue",mode="Enforce",reason="held"}': '0+5x40',
      'holdfast_guard_dropped_packets_total{pool="blue",mode="Enforce",reason="source_mac"}': '0+2x40',
    },
  },
  HoldfastGuardCountersOff: {
    at: '30m',
    fires: {
      'holdfast_guard_counters_status{instance="a",node="n1"}': '0x40',
      'holdfast_guard_ports{instance="a",node="n1",state="applied"}': '2x40',
      'holdfast_guard_counters_status{instance="b",node="n2"}': '1x5 0x40',
    },
    says: 'node n1',
    isQuiet: {
      // the component is not used
      'holdfast_guard_counters_status{instance="a",node="n1"}': '0x40',
      'holdfast_guard_ports{instance="a",node="n1",state="applied"}': '2x40',
    },
  },
  HoldfastGuestsLeftOut: {
    at: '20m',
    fires: { 'holdfast_responder_guests_left_out{pool="blue",instance="a"}': '0x5 3x20' },
    says: '3 guests of AddressPool blue',
    isQuiet: { 'holdfast_responder_guests_left_out{pool="blue",instance="a"}': '0x5 3x5 0x20' },
  },
};
