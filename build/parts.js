const SERVING = ['process/context', 'process/run', 'process/probes', 'monitoring/serve-metrics'];
/** By process: the modules that holdfast.ts imports for it when it needs them. */
export const PARTS = {
  agent: ['cni/agent/main', ...SERVING],
  all: ['controller/main', 'guest/main', 'ipam/main', 'webhook/main', ...SERVING],
  capacity: ['capacity/main', ...SERVING],
  controller: ['controller/main', ...SERVING],
  guest: ['guest/main', ...SERVING],
  'install-plugin': ['cni/agent/installation/install', 'process/log'],
  ipam: ['ipam/main', ...SERVING],
  responder: ['guest/responder-process/main', ...SERVING],
  webhook: ['webhook/main', ...SERVING],
};
