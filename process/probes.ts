import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import { ConnectionLimit, closeServer, isOnePort, listenOn, parseBindAddress } from './listening.js';

/** A condition for the readiness of the process. */
export interface ReadinessCheck {
  readonly name: string;
  /** @returns undefined if the check passes, otherwise why not */
  run(): string | undefined;
  /** @returns what an administrator must correct, although the process is ready */
  notice?(): string | undefined;
}

export interface ProbesOptions {
  /** In the form of parseBindAddress. */
  readonly healthBindAddress: string;
  readonly metricsBindAddress: string;
  readonly checks: readonly ReadinessCheck[];
  readonly registry: Registry;
  readonly log: Logger;
}

/** The ports of probes and metrics; undefined if they are disabled. */
export interface ProbeServer {
  readonly healthPort: number | undefined;
  readonly metricsPort: number | undefined;
  readonly close: () => Promise<void>;
}

/** A kubelet and a few scrapers connect. */
const MAX_CONNECTIONS = 64;
const REQUEST_MS = 5_000;

type Route = (response: ServerResponse) => void | Promise<void>;
type Routes = Readonly<Record<string, Route>>;

/**
 * Serves `/healthz` (the event loop runs), `/readyz` (all checks pass; the body lists the failed ones) and `/metrics`.
 * @throws {Error} if it cannot listen on an address; names the address
 */
export async function serveProbes(options: ProbesOptions): Promise<ProbeServer> {
  const { healthBindAddress, metricsBindAddress, registry, log } = options;
  const health: Routes = {
    '/healthz': (response) => answer(response, 200, 'ok\n'),
    '/readyz': (response) => answerChecks(response, options.checks),
  };
  const metrics: Routes = {
    '/metrics': async (response) => answer(response, 200, await registry.metrics(), registry.contentType),
  };
  const shared = isOnePort(healthBindAddress, metricsBindAddress);
  const healthServer = await listen(healthBindAddress, shared ? { ...health, ...metrics } : health, log);
  const metricsServer = shared ? healthServer : await listen(metricsBindAddress, metrics, log);
  const ports = { healthPort: portOf(healthServer), metricsPort: portOf(metricsServer) };
  log.info(ports, 'probes and metrics are served');
  return {
    ...ports,
    close: async () => {
      const servers = new Set([healthServer, metricsServer].filter((server) => server !== undefined));
      await Promise.all([...servers].map(closeServer));
    },
  };
}

async function listen(text: string, routes: Routes, log: Logger): Promise<Server | undefined> {
  const address = parseBindAddress(text);
  if (address === undefined) return undefined;
  const settings = { headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS, connectionsCheckingInterval: 1_000 };
  const server = createServer(settings, (request, response) => void serve(routes, request, response, log));
  new ConnectionLimit(server, MAX_CONNECTIONS);
  await listenOn(server, address);
  return server;
}

async function serve(routes: Routes, request: IncomingMessage, response: ServerResponse, log: Logger): Promise<void> {
  const path = request.url?.split('?', 1)[0] ?? '';
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  try {
    if (route === undefined) answer(response, 404, `not found; available paths: ${Object.keys(routes).join(', ')}\n`);
    else if (request.method !== 'GET' && request.method !== 'HEAD') answer(response, 405, 'send a GET\n');
    else await route(response);
  } catch (error) {
    log.error({ err: error, path }, `probe failed: ${messageOf(error)}`);
    answer(response, 500, 'see the log\n');
  }
}

function answerChecks(response: ServerResponse, checks: readonly ReadinessCheck[]): void {
  const results = checks.map((check) => ({ name: check.name, failure: check.run(), notice: check.notice?.() }));
  const ready = results.every(({ failure }) => failure === undefined);
  const lines = results.map(({ name, failure }) => (failure === undefined ? `[+] ${name}` : `[-] ${name}: ${failure}`));
  const notices = results.flatMap(({ name, notice }) => (notice === undefined ? [] : [`[!] ${name}: ${notice}`]));
  answer(response, ready ? 200 : 503, `${[...lines, ...notices, ready ? 'ready' : 'not ready'].join('\n')}\n`);
}

function answer(response: ServerResponse, status: number, body: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
}

function portOf(server: Server | undefined): number | undefined {
  return server === undefined ? undefined : (server.address() as AddressInfo).port;
}
