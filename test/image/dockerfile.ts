import { join } from 'node:path';
import { ensureModule } from '../../bed/build/binaries.js';
import { capture } from '../../bed/processes/processes.js';

/** What BuildKit makes of a Dockerfile: see dockerfile/main.go. */
export interface Dockerfile {
  readonly warnings: readonly { rule: string; line: number; message: string }[];
  /** The files that `.dockerignore` leaves in the build context, as paths from the folder of the Dockerfile. */
  readonly context: readonly string[];
  readonly stages: readonly Stage[];
  /** By platform. */
  readonly images: Readonly<Record<string, ImageConfig>>;
}

export interface Stage {
  readonly name: string;
  readonly base: string;
  readonly steps: readonly Step[];
}

export type Step =
  | { readonly kind: 'copy'; readonly from?: string; readonly sources: readonly string[]; readonly target: string }
  | { readonly kind: 'run'; readonly command: string }
  | { readonly kind: 'workdir'; readonly target: string };

/** A part of the config of the OCI image specification. */
export interface ImageConfig {
  readonly User: string;
  readonly WorkingDir: string;
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Env: readonly string[];
  readonly Labels: Readonly<Record<string, string>>;
}

export const PLATFORMS = ['linux/amd64', 'linux/arm64'] as const;

/** Converts a Dockerfile for all platforms. @throws {Error} with BuildKit's message */
export async function readDockerfile(path: string, args: Readonly<Record<string, string>> = {}): Promise<Dockerfile> {
  const folder = await ensureModule(join(import.meta.dirname, 'dockerfile'), () => undefined);
  const values = Object.entries(args).map(([name, value]) => `${name}=${value}`);
  return JSON.parse(await capture(join(folder, 'dockerfile'), [path, PLATFORMS.join(','), ...values])) as Dockerfile;
}
