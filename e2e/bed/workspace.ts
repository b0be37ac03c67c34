import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificates, type Certificates } from './certificates.js';
import { Processes } from './processes.js';

export interface WorkspaceOptions {
  /** Holds everything that the bed writes; without one, a new folder below the system's temporary folder. */
  workDir?: string;
  /** Leave the logs in place at the end. */
  keepLogs?: boolean;
}

/** Where a bed is built: its folders, its keys and its processes. */
export interface Workspace {
  readonly workDir: string;
  readonly logDir: string;
  /** Worth nothing after the end. */
  readonly dataDir: string;
  readonly processes: Processes;
  readonly certificates: Certificates;
  /** Ends all processes and removes the files. */
  close(): Promise<void>;
  /** As `close`, after a failure: the logs stay, since they say why. */
  abandon(): Promise<void>;
}

export async function openWorkspace(options: WorkspaceOptions): Promise<Workspace> {
  const workDir = options.workDir ?? (await mkdtemp(join(tmpdir(), 'holdfast-bed-')));
  const [logDir, dataDir] = [join(workDir, 'logs'), join(workDir, 'data')];
  await mkdir(dataDir, { recursive: true });
  const certificates = await makeCertificates(join(dataDir, 'pki'));
  const processes = new Processes(logDir, dataDir);
  const close = async (doomed: string) => {
    await processes.stop();
    await rm(doomed, { recursive: true, force: true });
  };
  return {
    workDir,
    logDir,
    dataDir,
    processes,
    certificates,
    close: () => close(options.keepLogs ? dataDir : workDir),
    abandon: () => close(dataDir),
  };
}
