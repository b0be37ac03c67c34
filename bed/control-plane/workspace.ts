import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificates, type Certificates } from './certificates.js';
import { Processes } from '../processes/processes.js';

export interface WorkspaceOptions {
  /** The folder for all files of the bed; by default a new temporary folder. */
  workDir?: string;
  /** Do not delete the logs at the end. */
  keepLogs?: boolean;
}

/** The folders, keys and processes of a bed. */
export interface Workspace {
  readonly workDir: string;
  readonly logDir: string;
  /** Temporary files, which are always deleted at the end. */
  readonly dataDir: string;
  readonly processes: Processes;
  readonly certificates: Certificates;
  /** Stops all processes and removes the files. */
  close(): Promise<void>;
  /** Like `close` after a failure: the logs stay. */
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
