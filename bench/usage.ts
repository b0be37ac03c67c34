import { readFile } from 'node:fs/promises';

/** Memory and CPU time of a process, from /proc (Linux). */
export interface Usage {
  rssMiB: number;
  /** The largest RSS so far. */
  peakMiB: number;
  /** User and system time. */
  cpuSeconds: number;
}

/** USER_HZ is 100 on every Linux that Holdfast runs on. */
const TICKS_PER_SECOND = 100;

export async function usageOf(pid: number): Promise<Usage> {
  const [stat, status] = await Promise.all(['stat', 'status'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8')));
  // the command's name may contain spaces: after its closing parenthesis utime is the 12th field, stime the 13th
  const fields = stat!.slice(stat!.lastIndexOf(')') + 2).split(' ');
  const mib = (key: string) => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status!)?.[1] ?? 0) / 1024;
  const cpuSeconds = (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  return { rssMiB: mib('VmRSS'), peakMiB: mib('VmHWM'), cpuSeconds };
}
