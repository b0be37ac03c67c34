#!/usr/bin/env node
import { type ProcessCommand, readCommandLine } from './process/command-line.js';
import { UsageError } from './process/read-arguments.js';
import { messageOf } from './kube/errors.js';
import type { ProcessContext } from './process/context.js';
import type { Component } from './process/component.js';

/** Each process loads only its own code, to save start-up time and memory. */
async function createComponents(request: ProcessCommand, context: ProcessContext): Promise<Component[]> {
  if (request.process === 'agent') return [(await import('./cni/agent/main.js')).createAgent(context, request.config)];
  if (request.process === 'capacity')
    return [(await import('./capacity/main.js')).createCapacity(context, request.config)];
  const { process, config } = request;
  const parts: Component[] = [];
  if (process === 'webhook' || process === 'all')
    parts.push((await import('./webhook/main.js')).createWebhook(context, config));
  if (process === 'ipam' || process === 'all') parts.push((await import('./ipam/main.js')).createIpam(context, config));
  if (process === 'controller' || process === 'all')
    parts.push((await import('./controller/main.js')).createController(context, config));
  return parts;
}

async function main(): Promise<number> {
  const request = readCommandLine(process.argv.slice(2), process.env);
  if (request === undefined) return 0;
  const [{ createContext, closeContext }, { runProcess }, { serveProbes }] = await Promise.all([
    import('./process/context.js'),
    import('./process/run.js'),
    import('./process/probes.js'),
  ]);
  const { config } = request;
  const context = await createContext(request.process, config);
  const { log, clock, metrics } = context;
  const { healthBindAddress, metricsBindAddress } = config;
  return runProcess({
    components: await createComponents(request, context),
    log,
    clock,
    signals: process,
    closeShared: () => closeContext(context),
    serveChecks: (checks) =>
      serveProbes({ healthBindAddress, metricsBindAddress, checks, registry: metrics.registry, log }),
  });
}

try {
  process.exit(await main());
} catch (error) {
  const usage = error instanceof UsageError;
  process.stderr.write(
    `holdfast: ${messageOf(error)}\n${usage ? `See: ${error.helpCommand ?? 'holdfast --help'}\n` : ''}`,
  );
  process.exit(usage ? 2 : 1);
}
