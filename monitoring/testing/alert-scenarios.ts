import { OUTAGE_SCENARIOS } from './outage-scenarios.js';
import { POOL_SCENARIOS } from './pool-scenarios.js';
import type { AlertScenario } from './scenario.js';

/** For each alert, series that make it fire, with a part of its description, and others that do not, in promtool's notation: one value a minute. */
export const ALERT_SCENARIOS: Readonly<Record<string, AlertScenario>> = {
  ...POOL_SCENARIOS,
  ...OUTAGE_SCENARIOS,
  HoldfastClaimsWaiting: {
    fires: { series: { 'holdfast_ipam_claims_waiting{namespace="holdfast-system"}': '2x20' }, at: '15m' },
    says: '2 IPAMClaims',
    isQuiet: { series: { 'holdfast_ipam_claims_waiting{namespace="holdfast-system"}': '0x10 1x3 0x10' }, at: '15m' },
  },
  HoldfastAddressNotLeased: {
    fires: { series: { 'holdfast_ipam_unleased_addresses{namespace="holdfast-system"}': '1x20' }, at: '15m' },
    says: '1 addresses',
    isQuiet: { series: { 'holdfast_ipam_unleased_addresses{namespace="holdfast-system"}': '0x20' }, at: '15m' },
  },
  HoldfastWebhookFailing: {
    fires: {
      series: {
        // both are in the process of all
        'holdfast_webhook_review_duration_seconds_count{result="failed",namespace="holdfast-system",instance="a"}':
          '1x30',
        'holdfast_ipam_review_duration_seconds_count{result="failed",namespace="holdfast-system",instance="a"}':
          '0+1x30',
      },
      at: '20m',
    },
    says: 'Admission reviews have failed',
    isQuiet: {
      series: {
        'holdfast_webhook_review_duration_seconds_count{result="failed",namespace="holdfast-system"}': '3x30',
        'holdfast_webhook_review_duration_seconds_count{result="denied",namespace="holdfast-system"}': '0+9x30',
      },
      at: '20m',
    },
  },
  HoldfastWebhookSlow: {
    fires: {
      series: {
        'holdfast_webhook_review_duration_seconds_bucket{le="1",namespace="h"}': '0+1x40',
        'holdfast_webhook_review_duration_seconds_bucket{le="2",namespace="h"}': '0+5x40',
        'holdfast_webhook_review_duration_seconds_bucket{le="+Inf",namespace="h"}': '0+5x40',
      },
      at: '30m',
    },
    says: 'more than a second',
    isQuiet: {
      series: {
        'holdfast_webhook_review_duration_seconds_bucket{le="1",namespace="h"}': '0+5x40',
        'holdfast_webhook_review_duration_seconds_bucket{le="2",namespace="h"}': '0+5x40',
        'holdfast_webhook_review_duration_seconds_bucket{le="+Inf",namespace="h"}': '0+5x40',
      },
      at: '30m',
    },
  },
  HoldfastCertificateNearExpiry: {
    fires: {
      series: {
        'holdfast_certificate_expiration_timestamp_seconds{server="webhook",certificate="serving",instance="a"}':
          '600000x120',
      },
      at: '2h',
    },
    says: 'webhook',
    isQuiet: {
      series: {
        'holdfast_certificate_expiration_timestamp_seconds{server="webhook",certificate="serving",instance="a"}':
          '700000x120',
      },
      at: '2h',
    },
  },
  HoldfastWatchStale: {
    fires: {
      series: {
        'holdfast_kube_watch_last_progress_timestamp_seconds{resource="pods",instance="a",pod="p"}': '0+60x5 300x30',
      },
      at: '30m',
    },
    says: 'pods',
    isQuiet: {
      series: {
        'holdfast_kube_watch_last_progress_timestamp_seconds{resource="pods",instance="a",pod="p"}': '0+60x40',
      },
      at: '30m',
    },
  },
  HoldfastQueueStuck: {
    fires: { series: { 'holdfast_queue_depth{queue="ipam-claims",instance="a"}': '500x60' }, at: '45m' },
    says: 'ipam-claims',
    isQuiet: { series: { 'holdfast_queue_depth{queue="ipam-claims",instance="a"}': '500x10 0x5 500x20' }, at: '35m' },
  },
  HoldfastLeasesLeaking: {
    fires: { series: { 'holdfast_leases_collected_total{leak="orphan",namespace="h"}': '0x5 0+1x60' }, at: '1h' },
    says: 'orphan',
    isQuiet: { series: { 'holdfast_leases_collected_total{leak="orphan",namespace="h"}': '4x60' }, at: '1h' },
  },
  HoldfastLeaksNotCollected: {
    fires: { series: { 'holdfast_leases_leak_candidates{namespace="h"}': '3x120' }, at: '90m' },
    says: 'at least 3',
    isQuiet: { series: { 'holdfast_leases_leak_candidates{namespace="h"}': '3x10 0x5 3x10 0x100' }, at: '90m' },
  },
  HoldfastPluginUnusable: {
    fires: { series: { 'holdfast_cni_plugin_usable{instance="a",node="n1"}': '0x20' }, at: '15m' },
    says: 'node n1',
    isQuiet: { series: { 'holdfast_cni_plugin_usable{instance="a",node="n1"}': '1x20' }, at: '15m' },
  },
  HoldfastPendingDeletesStuck: {
    fires: { series: { 'holdfast_cni_pending_deletes{instance="a",node="n1"}': '2x90' }, at: '70m' },
    says: 'at least 2',
    isQuiet: { series: { 'holdfast_cni_pending_deletes{instance="a",node="n1"}': '2x20 0x1 2x20 0x50' }, at: '70m' },
  },
  HoldfastCniRequestsFailing: {
    fires: {
      series: {
        'holdfast_cni_request_duration_seconds_count{command="ADD",code="7",instance="a",node="n1"}': '0+1x40',
      },
      at: '35m',
    },
    says: 'code 7',
    isQuiet: {
      series: {
        'holdfast_cni_request_duration_seconds_count{command="ADD",code="0",instance="a",node="n1"}': '0x10 1x15 2x15',
        'holdfast_cni_request_duration_seconds_count{command="ADD",code="11",instance="a",node="n1"}': '0+1x40',
        'holdfast_cni_request_duration_seconds_count{command="ADD",code="7",instance="a",node="n1"}': '5x40',
        'holdfast_cni_request_duration_seconds_count{command="DEL",code="100",instance="a",node="n1"}': '0+1x40',
      },
      at: '35m',
    },
  },
  HoldfastBlockReleaseStuck: {
    fires: { series: { 'holdfast_ipam_blocks{state="marked-for-release",instance="a"}': '2x90' }, at: '70m' },
    says: 'at least 2',
    isQuiet: {
      series: { 'holdfast_ipam_blocks{state="marked-for-release",instance="a"}': '2x20 0x1 2x20 0x50' },
      at: '70m',
    },
  },
  HoldfastGuestMisconfigured: {
    fires: { series: { 'holdfast_guest_misconfigured_interfaces{instance="a"}': '2x20' }, at: '15m' },
    says: '2 interfaces',
    isQuiet: { series: { 'holdfast_guest_misconfigured_interfaces{instance="a"}': '0x10 1x3 0x10' }, at: '15m' },
  },
  HoldfastResponderTableStale: {
    fires: { series: { 'holdfast_responder_table_stale_status{pool="blue",instance="a"}': '0x5 1x10' }, at: '10m' },
    says: 'AddressPool blue',
    isQuiet: {
      series: { 'holdfast_responder_table_stale_status{pool="blue",instance="a"}': '0x5 1x1 0x10' },
      at: '7m',
    },
  },
  HoldfastResponderLosesPackets: {
    fires: {
      series: { 'holdfast_responder_dropped_packets_total{pool="blue",reason="lost"}': '0x5 40x10' },
      at: '10m',
    },
    says: 'AddressPool blue',
    isQuiet: {
      series: {
        'holdfast_responder_dropped_packets_total{pool="blue",reason="lost"}': '40x20',
        'holdfast_responder_dropped_packets_total{pool="blue",reason="unknown"}': '0+100x20',
      },
      at: '10m',
    },
  },
  HoldfastForeignDHCPServer: {
    fires: { series: { 'holdfast_responder_observations_total{pool="blue",kind="server"}': '0x5 1x10' }, at: '10m' },
    says: 'AddressPool blue',
    isQuiet: {
      series: {
        'holdfast_responder_observations_total{pool="blue",kind="server"}': '3x20',
        'holdfast_responder_observations_total{pool="blue",kind="router"}': '0+1x20',
      },
      at: '10m',
    },
  },
  HoldfastAddressConflict: {
    fires: { series: { 'holdfast_responder_observations_total{pool="blue",kind="conflict"}': '0x5 1x10' }, at: '10m' },
    says: 'AddressPool blue',
    isQuiet: { series: { 'holdfast_responder_observations_total{pool="blue",kind="declined"}': '0+1x20' }, at: '10m' },
  },
  HoldfastGuardNotApplied: {
    fires: {
      series: { 'holdfast_guard_ports{pool="blue",nad_namespace="",node="n1",state="failed"}': '2x20' },
      at: '15m',
    },
    says: 'node n1',
    isQuiet: {
      series: {
        'holdfast_guard_ports{pool="blue",nad_namespace="",node="n1",state="applied"}': '2x20',
        // that of a tenant
        'holdfast_guard_ports{pool="red",nad_namespace="vms",node="n1",state="failed"}': '2x20',
      },
      at: '15m',
    },
  },
  HoldfastTrafficNotOfClaim: {
    fires: {
      series: { 'holdfast_guard_dropped_packets_total{pool="blue",mode="Observe",reason="arp_sender"}': '0+5x40' },
      at: '35m',
    },
    says: 'AddressPool blue',
    isQuiet: {
      series: {
        'holdfast_guard_dropped_packets_total{pool="blue",mode="Enforce",reason="arp_sender"}': '7x40',
        'holdfast_guard_dropped_packets_total{pool="blue",mode="Enforce",reason="held"}': '0+5x40',
        'holdfast_guard_dropped_packets_total{pool="blue",mode="Enforce",reason="source_mac"}': '0+2x40',
      },
      at: '35m',
    },
  },
};
