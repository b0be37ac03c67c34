import type { AlertScenario } from './scenario.js';

/** The part of the scenarios that is about full pools. */
export const POOL_SCENARIOS: Readonly<Record<string, AlertScenario>> = {
  HoldfastPoolNearlyFull: {
    fires: {
      series: {
        'holdfast_ipam_pool_addresses{pool="blue",family="ipv4",state="free"}': '60-0.1x420',
        'holdfast_ipam_pool_capacity_addresses{pool="blue",family="ipv4"}': '254x420',
      },
      at: '7h',
    },
    says: 'blue',
    isQuiet: {
      series: {
        'holdfast_ipam_pool_addresses{pool="blue",family="ipv4",state="free"}': '60+0x420',
        'holdfast_ipam_pool_capacity_addresses{pool="blue",family="ipv4"}': '254x420',
        'holdfast_ipam_pool_addresses{pool="large",family="ipv4",state="free"}': '900-0.9x420',
        'holdfast_ipam_pool_capacity_addresses{pool="large",family="ipv4"}': '1000x420',
      },
      at: '7h',
    },
  },
  HoldfastPoolFull: {
    fires: { series: { 'holdfast_ipam_pool_addresses{pool="blue",family="ipv4",state="free"}': '0x20' }, at: '15m' },
    says: 'blue',
    isQuiet: {
      series: {
        'holdfast_ipam_pool_addresses{pool="blue",family="ipv4",state="free"}': '1x20',
        'holdfast_ipam_pool_addresses{pool="blue",family="ipv4",state="cooling"}': '0x20',
        'holdfast_ipam_pool_addresses{pool="lab.vms",nad_namespace="vms",family="ipv4",state="free"}': '0x20',
      },
      at: '15m',
    },
  },
  HoldfastDerivedPoolFull: {
    fires: {
      series: { 'holdfast_ipam_pool_addresses{pool="lab.vms",nad_namespace="vms",family="ipv4",state="free"}': '0x20' },
      at: '15m',
    },
    says: 'NADs in namespace vms',
    isQuiet: { series: { 'holdfast_ipam_pool_addresses{pool="blue",family="ipv4",state="free"}': '0x20' }, at: '15m' },
  },
};
