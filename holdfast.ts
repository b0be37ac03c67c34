#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';
import { type ProcessCommand, readCommandLine } from './process/command-line.js';
import type { InstallConfig } from './process/config/agent-config.js';
import { UsageError } from './process/read-arguments.js';
import { messageOf } from './kube/errors.js';
import type { Component, ProcessContext } from './process/context.js';
import type { ReadinessCheck } from './process/probes.js';

type ServingCommand = Exclude<ProcessCommand, { process: 'install-plugin' }>;

/** Each process loads only its own code, to save start-up time and memory. */
async function createComponents(request: ServingCommand, context: ProcessContext): Promise<Component[]> {
  if (request.process === 'agent') return [(await import('./cni/agent/main.js')).createAgent(context, request.config)];
  if (request.process === 'capacity')
    return [(await import('./capacity/main.js')).createCapacity(context, request.config)];
  if (request.process === 'responder')
    return [(await import('./guest/responder-process/main.js')).createResponder(context, request.config)];
  if (request.process === 'guest') return [(await import('./guest/main.js')).createGuest(context, request.config)];
  const { process, config } = request;
  const parts: Component[] = [];
  if (process === 'webhook' || process === 'all')
    parts.push((await import('./webhook/main.js')).createWebhook(context, config));
  if (process === 'ipam' || process === 'all') parts.push((await import('./ipam/main.js')).createIpam(context, config));
  if (process === 'controller' || process === 'all')
    parts.push((await import('./controller/main.js')).createController(context, config));
  if (process === 'all') parts.push((await import('./guest/main.js')).createGuest(context, config));
  return parts;
}

/** Serves probes, and metrics in the way that the flags say. */
async function serveChecks(
  context: ProcessContext,
  config: ServingCommand['config'],
  checks: readonly ReadinessCheck[],
) {
  const { healthBindAddress, metricsBindAddress, metricsSecure } = config;
  const { log, metrics } = context;
  const { serveProbes } = await import('./process/probes.js');
  const probes = { healthBindAddress, registry: metrics.registry, log };
  if (!metricsSecure) return serveProbes({ ...probes, metricsBindAddress, checks });
  const { serveSecureMetrics } = await import('./monitoring/serve-metrics.js');
  const secure = await serveSecureMetrics(context, config);
  const health = await serveProbes({ ...probes, metricsBindAddress: '0', checks: [...checks, secure.check] });
  return {
    close: async () => {
      await Promise.all([health.close(), secure.close()]);
    },
  };
}

async function install(config: InstallConfig): Promise<number> {
  const [{ runInstallation }, { createLogger }] = await Promise.all([
    import('./cni/agent/installation/install.js'),
    import('./process/log.js'),
  ]);
  return runInstallation(config, createLogger(config.logLevel, 'install-plugin'));
}

/**
 * Lets the heap grow by a fifth between two large garbage collections, which saves memory. On the command line, this option would make V8
 * reject the compiled code that Node.js has of its own modules, 40 ms of CPU time at each start. V8 reads it after each collection.
 */
function limitHeapGrowth(): void {
  setFlagsFromString('--heap-growing-percent=20');
}

async function main(): Promise<number> {
  const request = readCommandLine(process.argv.slice(2), process.env);
  if (request === undefined) return 0;
  if (request.process === 'install-plugin') return install(request.config);
  const [{ createContext, closeContext }, { runProcess }] = await Promise.all([
    import('./process/context.js'),
    import('./process/run.js'),
  ]);
  const { config } = request;
  const context = await createContext(request.process, config);
  const { log, clock } = context;
  const components = await createComponents(request, context);
  limitHeapGrowth();
  return runProcess({
    components,
    log,
    clock,
    signals: process,
    onFatal: (fail) => context.history.onWentBack(fail),
    closeShared: () => closeContext(context),
    serveChecks: (checks) => serveChecks(context, config, checks),
  });
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    const usage = error instanceof UsageError;
    process.stderr.write(
      `holdfast: ${messageOf(error)}\n${usage ? `See: ${error.helpCommand ?? 'holdfast --help'}\n` : ''}`,
    );
    process.exit(usage ? 2 : 1);
  },
);
