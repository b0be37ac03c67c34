import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { makeTemporaryFolder, removeTemporaryFolder } from '../../../test/temporary-folder.js';
import { ensureKubectl } from '../../build/binaries.js';
import { capture } from '../../processes/processes.js';

/** What a command has printed, standard output first. */
export interface KubectlOutput {
  readonly text: string;
  readonly succeeded: boolean;
}

/** kubectl, of the version of Kubernetes that the bed runs. */
export class Kubectl {
  readonly #command: string;
  readonly #folder: string;

  private constructor(command: string, folder: string) {
    this.#command = command;
    this.#folder = folder;
  }

  /**
   * Copies the kubeconfig, so that `kubectl config` changes no file of a user. The discovery cache is not shared either: that of an
   * earlier bed on the same port is wrong.
   * @param namespace of commands that name none. Default: as in the kubeconfig
   */
  static async open(kubeconfig: string, namespace?: string): Promise<Kubectl> {
    const command = await ensureKubectl((line) => console.log(line));
    const folder = await makeTemporaryFolder('holdfast-kubectl-');
    const copy = await capture(command, ['config', 'view', '--raw', '--flatten', '--kubeconfig', kubeconfig]);
    await writeFile(join(folder, 'config'), copy, { mode: 0o600 });
    const kubectl = new Kubectl(command, folder);
    if (namespace !== undefined)
      await kubectl.succeed(['config', 'set-context', '--current', '--namespace', namespace]);
    return kubectl;
  }

  close(): Promise<void> {
    return removeTemporaryFolder(this.#folder);
  }

  /** The namespace of commands that name none. */
  async namespace(): Promise<string> {
    return (await this.succeed(['config', 'view', '--minify', '-o', 'jsonpath={..namespace}'])) || 'default';
  }

  /** @returns the output @throws {Error} with the output if the command failed */
  async succeed(args: readonly string[], input?: string): Promise<string> {
    const output = await this.run(args, input);
    if (!output.succeeded) throw new Error(`kubectl ${args.join(' ')}: ${output.text}`);
    return output.text;
  }

  /** @param input for its standard input */
  async run(args: readonly string[], input = ''): Promise<KubectlOutput> {
    const [KUBECONFIG, KUBECACHEDIR] = [join(this.#folder, 'config'), join(this.#folder, 'cache')];
    const child = spawn(this.#command, args, { env: { ...process.env, KUBECONFIG, KUBECACHEDIR }, stdio: 'pipe' });
    child.stdin.on('error', () => undefined); // it may exit before it has read all input
    child.stdin.end(input);
    const ended = once(child, 'close').then(([code]) => code === 0);
    const [out, err, succeeded] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { text: `${out}${err}`.trimEnd(), succeeded };
  }
}
