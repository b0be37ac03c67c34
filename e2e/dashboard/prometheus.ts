import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureCommand, type Progress } from '../../bed/build/binaries.js';
import { findFreePorts } from '../../bed/processes/ports.js';
import type { Child, Processes } from '../../bed/processes/processes.js';
import { until } from '../../bed/processes/wait.js';
import type { Series } from './picture.js';

const VERSION = 'v0.316.0';

export interface Target {
  /** Unique. */
  readonly job: string;
  readonly port: number;
  /** `https` by default. */
  readonly scheme?: 'http';
}

/** A Prometheus that scrapes processes on this machine with a token. */
export class Prometheus {
  readonly #url: string;
  readonly #child: Child;

  private constructor(url: string, child: Child) {
    this.#url = url;
    this.#child = child;
  }

  /** @param folder for its configuration and data */
  static async start(
    folder: string,
    processes: Processes,
    options: { command: string; targets: readonly Target[]; token: string; rules: string },
  ): Promise<Prometheus> {
    const { command, targets, token, rules } = options;
    const [port = 0] = await findFreePorts(1);
    const file = (name: string) => join(folder, name);
    await writeFile(file('token'), token, { mode: 0o600 });
    await writeFile(file('rules.yml'), rules);
    await writeFile(file('prometheus.yml'), JSON.stringify(configOf(targets, file('token'), file('rules.yml'))));
    const args = [
      `--config.file=${file('prometheus.yml')}`,
      `--storage.tsdb.path=${file('data')}`,
      `--web.listen-address=127.0.0.1:${String(port)}`,
    ];
    const url = `http://127.0.0.1:${String(port)}`;
    const prometheus = new Prometheus(url, processes.start({ name: 'prometheus', command, args }));
    await until('Prometheus to be ready', async () => (await fetch(`${url}/-/ready`)).ok, { timeoutMs: 60_000 });
    return prometheus;
  }

  /** @returns the number of series that a query finds now, without those that are not a number */
  async seriesOf(query: string): Promise<number> {
    const answer = await this.#get(`/api/v1/query?query=${encodeURIComponent(query)}`);
    const { result } = (answer as { data: { result: { value: [number, string] }[] } }).data;
    return result.filter(({ value }) => value[1] !== 'NaN').length;
  }

  /**
   * Asks for the values of a query over the last minutes.
   * @param legendFormat as Grafana has it: `{{label}}`
   */
  async rangeOf(query: string, legendFormat: string, minutes: number): Promise<Series[]> {
    const end = Date.now() / 1000;
    const range = { start: String(end - 60 * minutes), end: String(end), step: String(minutes) };
    const answer = await this.#get(`/api/v1/query_range?${new URLSearchParams({ query, ...range }).toString()}`);
    const { result } = (answer as { data: { result: RangeResult[] } }).data;
    return result.map(({ metric, values }) => ({
      legend: legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? ''),
      points: values
        .map(([time, value]): [number, number] => [time, Number(value)])
        .filter(([, value]) => Number.isFinite(value)),
    }));
  }

  /** @returns the targets that it cannot scrape, each with the error */
  async failedTargets(): Promise<string[]> {
    const answer = await this.#get('/api/v1/targets');
    const { activeTargets } = (answer as { data: { activeTargets: ActiveTarget[] } }).data;
    return activeTargets.flatMap(({ health, scrapeUrl, lastError }) =>
      health === 'up' ? [] : [`${scrapeUrl}: ${lastError}`],
    );
  }

  /** @returns the alerts that it has not evaluated */
  async failedRules(): Promise<string[]> {
    const answer = await this.#get('/api/v1/rules');
    const { groups } = (answer as { data: { groups: { rules: { name: string; health: string }[] }[] } }).data;
    return groups.flatMap(({ rules }) =>
      rules.flatMap(({ name, health }) => (health === 'ok' ? [] : [`alert ${name}: ${health}`])),
    );
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }

  async #get(path: string): Promise<unknown> {
    const answer = await fetch(`${this.#url}${path}`);
    if (!answer.ok) throw new Error(`Prometheus answered ${path} with ${answer.status}: ${await answer.text()}`);
    return answer.json();
  }
}

interface RangeResult {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly [number, string][];
}

interface ActiveTarget {
  readonly health: string;
  readonly scrapeUrl: string;
  readonly lastError: string;
}

/** The path of Prometheus, without its service discoveries for clouds, which are most of its packages. */
export const ensurePrometheus = (progress: Progress): Promise<string> =>
  ensureCommand(`github.com/prometheus/prometheus/cmd/prometheus@${VERSION}`, progress, 'remove_all_sd');

function configOf(targets: readonly Target[], tokenFile: string, rules: string): object {
  return {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    scrape_configs: targets.map(({ job, port, scheme = 'https' }) => ({
      job_name: job,
      scheme,
      authorization: { credentials_file: tokenFile },
      tls_config: { insecure_skip_verify: true },
      static_configs: [{ targets: [`127.0.0.1:${String(port)}`], labels: { namespace: 'holdfast-system' } }],
    })),
  };
}
