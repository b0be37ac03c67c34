import { type AlertScenario, GUEST_ALERT_SCENARIOS } from './guest-alert-scenarios.js';

/**
 * For each alert, series that make it fire, with a part of its description, and others that do not, in promtool's notation: one value a
 * minute.
 */
export const ALERT_SCENARIOS: Readonly<Record<string, AlertScenario>> = {
  // Full pools.
  HoldfastPoolNearlyFull: {
    at: '7h',
    fires: {
      // the former leader saw no change
      'holdfast_ipam_pool_available_addresses{pool="blue",family="ipv4",instance="a"}': '60x300 stale',
      'holdfast_ipam_pool_available_addresses{pool="blue",family="ipv4",instance="b"}': '_x301 60-0.3x119',
      'holdfast_ipam_pool_capacity_addresses{pool="blue",family="ipv4"}': '254x420',
    },
    says: 'blue',
    isQuiet: {
      'holdfast_ipam_pool_available_addresses{pool="blue",family="ipv4"}': '60+0x420',
      'holdfast_ipam_pool_capacity_addresses{pool="blue",family="ipv4"}': '254x420',
      'holdfast_ipam_pool_available_addresses{pool="large",family="ipv4"}': '900-0.9x420',
      'holdfast_ipam_pool_capacity_addresses{pool="large",family="ipv4"}': '1000x420',
    },
  },
  HoldfastPoolFull: {
    at: '15m',
    fires: { 'holdfast_ipam_pool_available_addresses{pool="blue",family="ipv4"}': '0x20' },
    says: 'blue',
    isQuiet: {
      'holdfast_ipam_pool_available_addresses{pool="blue",family="ipv4"}': '1x20',
      'holdfast_ipam_pool_available_addresses{pool="lab.vms",nad_namespace="vms",family="ipv4"}': '0x20',
    },
  },
  HoldfastDerivedPoolFull: {
    at: '15m',
    fires: { 'holdfast_ipam_pool_available_addresses{pool="lab.vms",nad_namespace="vms",family="ipv4"}': '0x20' },
    says: 'NADs in namespace vms',
    isQuiet: { 'holdfast_ipam_pool_available_addresses{pool="blue",family="ipv4"}': '0x20' },
  },
  // Processes that do not work. Alerts must last as long as the outage, and end when a process is not wanted any more.
  HoldfastNoLeader: {
    at: '10m',
    fires: {
      'holdfast_leading_status{name="holdfast-ipam",instance="a"}': '0x20',
      'holdfast_leading_status{name="holdfast-ipam",instance="b"}': '0x20',
    },
    says: 'holdfast-ipam',
    isQuiet: {
      'holdfast_leading_status{name="holdfast-ipam",instance="a"}': '0x20',
      'holdfast_leading_status{name="holdfast-ipam",instance="b"}': '1x20',
    },
  },
  HoldfastProcessNotAnswering: {
    at: '7h',
    quietAt: '25m',
    fires: { 'up{app_kubernetes_io_name="holdfast",job="ipam",instance="a"}': '1x5 0x600' },
    says: 'ipam',
    isQuiet: {
      'up{app_kubernetes_io_name="holdfast",job="ipam",instance="a"}': '1x5 0x3 1x30',
      'up{app_kubernetes_io_name="holdfast",job="ipam",instance="removed"}': '1x5 0x3 stale',
      'up{job="other",instance="b"}': '0x40',
    },
  },
  HoldfastAgentNotAnswering: {
    at: '2h',
    quietAt: '25m',
    fires: { 'up{app_kubernetes_io_name="holdfast",job="agent",instance="n1",node="n1"}': '1x5 0x480' },
    says: 'node n1',
    isQuiet: {
      'up{app_kubernetes_io_name="holdfast",job="agent",instance="n1",node="n1"}': '1x40',
      'up{app_kubernetes_io_name="holdfast",job="agent",instance="n2",node="removed"}': '1x5 0x3 stale',
    },
  },
  HoldfastProcessAbsent: {
    at: '8h',
    quietAt: '30m',
    fires: { 'holdfast_build_info{process="agent",instance="a"}': '1x5 stale' },
    says: 'agent',
    isQuiet: {
      'holdfast_build_info{process="webhook",instance="a"}': '1x5 stale',
      'holdfast_build_info{process="webhook",instance="b"}': '_x4 1x40',
    },
  },
  HoldfastResponderDown: {
    at: '2h',
    quietAt: '20m',
    fires: {
      'holdfast_guest_responders_wanted_status{pool="blue"}': '1x150',
      'holdfast_responder_connected_status{pool="blue",instance="a"}': '1x5 0x20 stale',
      'holdfast_responder_connected_status{pool="blue",instance="b"}': '1x5 stale',
    },
    says: 'AddressPool blue',
    isQuiet: {
      'holdfast_guest_responders_wanted_status{pool="blue"}': '1x30',
      'holdfast_responder_connected_status{pool="blue",instance="a"}': '1x5 0x20',
      'holdfast_responder_connected_status{pool="blue",instance="b"}': '1x30',
      // spec.guest.dhcp was removed
      'holdfast_guest_responders_wanted_status{pool="green"}': '1x14 stale',
      'holdfast_responder_connected_status{pool="green",instance="c"}': '1x14 stale',
    },
  },
  // The rest.
  HoldfastClaimsWaiting: {
    at: '15m',
    fires: { 'holdfast_ipam_claims_waiting{namespace="holdfast-system"}': '2x20' },
    says: '2 IPAMClaims',
    isQuiet: { 'holdfast_ipam_claims_waiting{namespace="holdfast-system"}': '0x10 1x3 0x10' },
  },
  HoldfastAddressNotLeased: {
    at: '15m',
    fires: { 'holdfast_ipam_unleased_addresses{namespace="holdfast-system"}': '1x20' },
    says: '1 addresses',
    isQuiet: { 'holdfast_ipam_unleased_addresses{namespace="holdfast-system"}': '0x20' },
  },
  HoldfastSyncsFailing: {
    at: '20m',
    quietAt: '30m',
    fires: {
      'holdfast_sync_duration_seconds_count{loop="controller",result="invalid",namespace="h"}': '0+1x40',
      'holdfast_sync_duration_seconds_count{loop="controller",result="done",namespace="h"}': '0+9x40',
    },
    says: 'loop controller',
    isQuiet: {
      'holdfast_sync_duration_seconds_count{loop="controller",result="invalid",namespace="h"}': '3x9 4x40',
      'holdfast_sync_duration_seconds_count{loop="controller",result="transient",namespace="h"}': '0+1x40',
      'holdfast_sync_duration_seconds_count{loop="controller",result="done",namespace="h"}': '0+9x40',
      'holdfast_sync_duration_seconds_count{loop="capacity",result="transient",namespace="h"}': '0x20 0+1x4 4x40',
    },
  },
  HoldfastWebhookFailing: {
    at: '20m',
    quietAt: '18m',
    fires: {
      // both are in the process of all
      'holdfast_webhook_review_duration_seconds_count{result="failed",namespace="holdfast-system",instance="a"}':
        '1x30',
      'holdfast_ipam_review_duration_seconds_count{result="failed",namespace="holdfast-system",instance="a"}': '0+1x30',
    },
    says: 'Admission reviews have failed',
    isQuiet: {
      // one failure
      'holdfast_webhook_review_duration_seconds_count{result="failed",namespace="holdfast-system"}': '3x9 4x20',
      'apiserver_admission_webhook_rejection_count{name="launcher-pods.ipam.holdfast.dev",error_type="no_error"}':
        '0+1x30',
      'holdfast_webhook_review_duration_seconds_count{result="denied",namespace="holdfast-system"}': '0+9x30',
    },
  },
  HoldfastWebhookSlow: {
    at: '30m',
    fires: {
      'holdfast_webhook_review_duration_seconds_bucket{le="1",namespace="h"}': '0+1x40',
      'holdfast_webhook_review_duration_seconds_bucket{le="2",namespace="h"}': '0+5x40',
      'holdfast_webhook_review_duration_seconds_bucket{le="+Inf",namespace="h"}': '0+5x40',
    },
    says: 'more than a second',
    isQuiet: {
      'holdfast_webhook_review_duration_seconds_bucket{le="1",namespace="h"}': '0+5x40',
      'holdfast_webhook_review_duration_seconds_bucket{le="2",namespace="h"}': '0+5x40',
      'holdfast_webhook_review_duration_seconds_bucket{le="+Inf",namespace="h"}': '0+5x40',
    },
  },
  HoldfastCertificateNearExpiry: {
    at: '2h',
    fires: {
      'holdfast_certificate_expiration_timestamp_seconds{server="webhook",certificate="serving",instance="a"}':
        '600000x120',
    },
    says: 'webhook',
    isQuiet: {
      'holdfast_certificate_expiration_timestamp_seconds{server="webhook",certificate="serving",instance="a"}':
        '700000x120',
    },
  },
  HoldfastWatchStale: {
    at: '30m',
    fires: {
      'holdfast_kube_watch_last_progress_timestamp_seconds{resource="pods",instance="a",pod="p"}': '0+60x5 300x30',
    },
    says: 'pods',
    isQuiet: { 'holdfast_kube_watch_last_progress_timestamp_seconds{resource="pods",instance="a",pod="p"}': '0+60x40' },
  },
  HoldfastQueueStuck: {
    at: '45m',
    quietAt: '35m',
    fires: { 'holdfast_queue_depth{queue="ipam-claims",instance="a"}': '500x60' },
    says: 'ipam-claims',
    isQuiet: { 'holdfast_queue_depth{queue="ipam-claims",instance="a"}': '500x10 0x5 500x20' },
  },
  HoldfastLeasesLeaking: {
    at: '1h',
    fires: { 'holdfast_leases_collected_total{leak="orphan",namespace="h"}': '0x5 0+1x60' },
    says: 'orphan',
    isQuiet: { 'holdfast_leases_collected_total{leak="orphan",namespace="h"}': '4x60' },
  },
  HoldfastLeaksNotCollected: {
    at: '90m',
    fires: { 'holdfast_leases_leak_candidates{namespace="h"}': '3x120' },
    says: 'at least 3',
    isQuiet: { 'holdfast_leases_leak_candidates{namespace="h"}': '3x10 0x5 3x10 0x100' },
  },
  HoldfastPluginUnusable: {
    at: '15m',
    fires: { 'holdfast_cni_plugin_usable{instance="a",node="n1"}': '0x20' },
    says: 'node n1',
    isQuiet: { 'holdfast_cni_plugin_usable{instance="a",node="n1"}': '1x20' },
  },
  HoldfastPendingDeletesStuck: {
    at: '70m',
    fires: { 'holdfast_cni_pending_deletes{instance="a",node="n1"}': '2x90' },
    says: 'at least 2',
    isQuiet: { 'holdfast_cni_pending_deletes{instance="a",node="n1"}': '2x20 0x1 2x20 0x50' },
  },
  HoldfastCniRequestsFailing: {
    at: '35m',
    fires: { 'holdfast_cni_request_duration_seconds_count{command="ADD",code="7",instance="a",node="n1"}': '0+1x40' },
    says: 'code 7',
    isQuiet: {
      'holdfast_cni_request_duration_seconds_count{command="ADD",code="0",instance="a",node="n1"}': '0x10 1x15 2x15',
      'holdfast_cni_request_duration_seconds_count{command="ADD",code="11",instance="a",node="n1"}': '0+1x40',
      'holdfast_cni_request_duration_seconds_count{command="ADD",code="7",instance="a",node="n1"}': '5x40',
      'holdfast_cni_request_duration_seconds_count{command="DEL",code="100",instance="a",node="n1"}': '0+1x40',
    },
  },
  HoldfastBlockReleaseStuck: {
    at: '70m',
    fires: { 'holdfast_ipam_blocks{state="marked-for-release",instance="a"}': '2x90' },
    says: 'at least 2',
    isQuiet: { 'holdfast_ipam_blocks{state="marked-for-release",instance="a"}': '2x20 0x1 2x20 0x50' },
  },
  HoldfastAuditLogNotWritten: {
    at: '30m',
    fires: { 'holdfast_audit_write_failures_total{namespace="h",instance="a"}': '0+4x40' },
    says: 'audit log',
    isQuiet: { 'holdfast_audit_write_failures_total{namespace="h",instance="a"}': '0x20 1x20' },
  },
  ...GUEST_ALERT_SCENARIOS,
};
