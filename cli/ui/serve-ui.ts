import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '../../kube/client.js';
import type { Clock, Random } from '../../kube/clock.js';
import { runInSlices } from '../../kube/run-in-slices.js';
import { VERSION } from '../../process/version.js';
import { addClusterFlags } from '../cluster-flags.js';
import { checkProcesses } from '../doctor/check-processes.js';
import { diagnosis } from '../doctor/diagnose.js';
import type { Finding } from '../doctor/finding.js';
import { observeCluster } from '../doctor/observe.js';
import { ClusterWatch } from './cluster-watch.js';
import { type PageFiles, leadingPage } from './html.js';
import type { ViewRequest } from './protocol.js';
import { UiServer } from './server.js';
import { type RandomBytes, Sessions } from './session.js';
import { PoolUseHistory } from './use-history.js';
import { buildView, usedOf } from './views.js';
import { SharedRead } from './shared-read.js';
import { VmStories } from './vm-stories.js';

interface UiDeps {
  readonly client: Client;
  /** Of commands on the page. */
  readonly clusterFlags: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly randomBytes: RandomBytes;
  readonly page: PageFiles;
}

interface UiOptions {
  /** 0: a free one. */
  readonly port: number;
  /** Where to look for objects of which the user may not list all. */
  readonly namespace: string;
}

/** The doctor reads much: the page pauses at least for this time, and ten times longer than reading took. */
const MIN_PAUSE_MS = 5_000;

/** The running server, with the watches and the history that it shows. */
export class Ui {
  readonly server: UiServer;
  readonly #cluster: ClusterWatch;
  readonly #history = new PoolUseHistory();
  readonly #stories: VmStories;
  readonly #findings: SharedRead<readonly Finding[]>;
  readonly #leaders: SharedRead<readonly Finding[]>;
  readonly #abort = new AbortController();
  readonly #sampling: Promise<void>;

  private constructor(deps: UiDeps, { namespace }: UiOptions, onOpened: () => void) {
    const { client, clusterFlags, clock, random, randomBytes, page } = deps;
    const onChange = () => {
      // the history begins with the first list
      if (this.#history.times.length === 0) this.#takeSample(clock);
      this.#stories.changed();
      this.server.changed();
    };
    this.#stories = new VmStories({ client, clusterFlags, clock, onRead: () => this.server.changed() });
    const observe = (withData: boolean) =>
      observeCluster(client, { withData, home: namespace, showProgress: () => undefined, readOnlyAt: clock.wall() });
    const periodic = {
      clock,
      onRead: () => this.server.changed(),
      pauseAfter: (tookMs: number) => Math.max(MIN_PAUSE_MS, 10 * tookMs),
      isPeriodic: true,
    };
    const findingsRead = (read: () => Promise<readonly Finding[]>) =>
      new SharedRead(async () => addClusterFlags(await read(), clusterFlags), periodic);
    this.#findings = findingsRead(async () => runInSlices(diagnosis(await observe(true), VERSION), clock));
    this.#leaders = findingsRead(async () =>
      checkProcesses(await observe(false), VERSION).filter(({ check }) => check === 'leaders'),
    );
    this.#cluster = new ClusterWatch({ client, clock, random, onChange }, namespace);
    const sources = {
      cluster: this.#cluster,
      history: this.#history,
      stories: this.#stories,
      findings: this.#findings,
      leaders: this.#leaders,
      wall: () => clock.wall(),
    };
    this.server = new UiServer({
      page,
      sessions: new Sessions(randomBytes),
      clock,
      buildView: (request) => buildView(request, sources),
      watchFor: (request) => this.#watchFor(request),
      onOpened,
    });
    this.#sampling = this.#sample(clock);
  }

  /** @throws {CommandError} if the port is in use */
  static async start(deps: UiDeps, options: UiOptions, onOpened: () => void = () => undefined): Promise<Ui> {
    const ui = new Ui(deps, options, onOpened);
    try {
      await ui.server.listen(options.port);
      ui.#cluster.start();
      return ui;
    } catch (error) {
      await ui.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#stories.stop();
    this.#findings.stop();
    this.#leaders.stop();
    await Promise.all([this.server.stop(), this.#cluster.stop(), this.#sampling]);
  }

  /** Watches the events of a VM that somebody looks at, and reads its story; or reads what the doctor finds. */
  #watchFor({ view, namespace, name }: ViewRequest): () => void {
    const ends = [this.#leaders.open()];
    if (view === 'vms' || view === 'waiting') ends.push(this.#findings.open());
    if (view === 'vm') ends.push(this.#cluster.watchEvents(namespace), this.#stories.open(namespace, name));
    return () => {
      for (const end of ends) end();
    };
  }

  async #sample(clock: Clock): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      await clock.sleep(this.#history.intervalMs, signal);
      this.#takeSample(clock);
      this.server.changed();
    }
  }

  #takeSample(clock: Clock): void {
    const { cache, status } = this.#cluster.pools;
    if (status.state === 'live') this.#history.sample(clock.wall(), cache.list().map(usedOf));
  }
}

interface UiTerminal {
  readonly print: (line: string) => void;
  /** Present if a user can press Enter. */
  readonly input?: NodeJS.ReadStream | undefined;
}

/** Serves the page until the process is interrupted. */
export async function serveUi(
  deps: UiDeps,
  options: UiOptions & { readonly opensBrowser: boolean },
  { print, input }: UiTerminal,
): Promise<void> {
  let launcher: LauncherFile | undefined;
  const forget = () => void launcher?.remove();
  const interrupted = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  const ui = await Ui.start(deps, options, forget);
  try {
    const url = ui.server.entranceUrl();
    if (options.opensBrowser) {
      launcher = await writeLauncher(url);
      openInBrowser(launcher.path);
    }
    print(`Open this address. It can be used once: ${url}`);
    print(`It shows what you may read in this cluster, until you stop this command with Ctrl-C.`);
    if (input !== undefined) print('Press Enter for another address.');
    input?.on('data', () => print(ui.server.entranceUrl()));
    await interrupted;
  } finally {
    input?.destroy();
    await launcher?.remove();
    await ui.stop();
  }
}

const COMMANDS: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

interface LauncherFile {
  readonly path: string;
  readonly remove: () => Promise<void>;
}

/** Writes a file that opens a URL. Only its owner can read it, but every user of the machine can read the arguments of a process. */
export async function writeLauncher(url: string): Promise<LauncherFile> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-ui-'));
  const path = join(folder, 'holdfast.html');
  await writeFile(path, leadingPage(url), { mode: 0o600 });
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Opens a file in the user's browser. Nothing happens on a machine without one. */
function openInBrowser(path: string): void {
  const [command, ...args] = COMMANDS[process.platform] ?? ['xdg-open'];
  const child = spawn(command, [...args, path], { stdio: 'ignore', detached: true });
  child.on('error', () => undefined);
  child.unref();
}
