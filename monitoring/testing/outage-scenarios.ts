import type { AlertScenario } from './scenario.js';

/** The part of the scenarios that is about processes that do not work. Alerts must last as long as the outage, and end when a process is not wanted any more. */
export const OUTAGE_SCENARIOS: Readonly<Record<string, AlertScenario>> = {
  HoldfastNoLeader: {
    fires: {
      series: {
        'holdfast_leading_status{name="holdfast-ipam",instance="a"}': '0x20',
        'holdfast_leading_status{name="holdfast-ipam",instance="b"}': '0x20',
      },
      at: '10m',
    },
    says: 'holdfast-ipam',
    isQuiet: {
      series: {
        'holdfast_leading_status{name="holdfast-ipam",instance="a"}': '0x20',
        'holdfast_leading_status{name="holdfast-ipam",instance="b"}': '1x20',
      },
      at: '10m',
    },
  },
  HoldfastProcessNotAnswering: {
    fires: { series: { 'up{app_kubernetes_io_name="holdfast",job="ipam",instance="a"}': '1x5 0x600' }, at: '7h' },
    says: 'ipam',
    isQuiet: {
      series: {
        'up{app_kubernetes_io_name="holdfast",job="ipam",instance="a"}': '1x5 0x3 1x30',
        'up{app_kubernetes_io_name="holdfast",job="ipam",instance="removed"}': '1x5 0x3 stale',
        'up{job="other",instance="b"}': '0x40',
      },
      at: '25m',
    },
  },
  HoldfastAgentNotAnswering: {
    fires: {
      series: { 'up{app_kubernetes_io_name="holdfast",job="agent",instance="n1",node="n1"}': '1x5 0x480' },
      at: '2h',
    },
    says: 'node n1',
    isQuiet: {
      series: {
        'up{app_kubernetes_io_name="holdfast",job="agent",instance="n1",node="n1"}': '1x40',
        'up{app_kubernetes_io_name="holdfast",job="agent",instance="n2",node="removed"}': '1x5 0x3 stale',
      },
      at: '25m',
    },
  },
  HoldfastProcessAbsent: {
    fires: { series: { 'holdfast_build_info{process="webhook",instance="a"}': '1x5 stale' }, at: '8h' },
    says: 'webhook',
    isQuiet: {
      series: {
        'holdfast_build_info{process="webhook",instance="a"}': '1x5 stale',
        'holdfast_build_info{process="webhook",instance="b"}': '_x4 1x40',
      },
      at: '30m',
    },
  },
  HoldfastResponderDown: {
    fires: {
      series: {
        'holdfast_guest_responders_wanted_status{pool="blue"}': '1x150',
        'holdfast_responder_connected_status{pool="blue",instance="a"}': '1x5 0x20 stale',
        'holdfast_responder_connected_status{pool="blue",instance="b"}': '1x5 stale',
      },
      at: '2h',
    },
    says: 'AddressPool blue',
    isQuiet: {
      series: {
        'holdfast_guest_responders_wanted_status{pool="blue"}': '1x30',
        'holdfast_responder_connected_status{pool="blue",instance="a"}': '1x5 0x20',
        'holdfast_responder_connected_status{pool="blue",instance="b"}': '1x30',
        // spec.guest.dhcp was removed
        'holdfast_guest_responders_wanted_status{pool="green"}': '1x14 stale',
        'holdfast_responder_connected_status{pool="green",instance="c"}': '1x14 stale',
      },
      at: '20m',
    },
  },
};
