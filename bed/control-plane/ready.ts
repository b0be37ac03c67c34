import { get } from 'node:https';
import { until } from '../processes/wait.js';
import type { Child } from '../processes/processes.js';

/**
 * Waits until a process is ready. A process that does not get ready is killed.
 * @throws {Error} at once if the process ends, with the end of its log
 */
export async function waitReady(child: Child, probe: () => Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const abort = new AbortController();
  void child.exited.then(() => abort.abort());
  try {
    await until(`${child.name} to be ready`, probe, { timeoutMs, signal: abort.signal });
  } catch (error) {
    child.assertRunning();
    await child.kill();
    throw error;
  }
}

/** The body of a 200 answer. */
export function httpsGet(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(url, { ca, agent: false, timeout: 2_000 }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.once('error', reject).once('end', () => {
        if (response.statusCode === 200) resolve(body);
        else reject(new Error(`GET ${url}: ${response.statusCode ?? 0} ${body.slice(0, 200)}`));
      });
    });
    request.once('timeout', () => request.destroy(new Error(`GET ${url}: no answer`)));
    request.once('error', reject);
  });
}
