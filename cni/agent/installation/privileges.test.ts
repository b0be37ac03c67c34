import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { ROOT } from '../../../test/source-files.js';

const run = promisify(execFile);
const SCRIPT = `
  import { createLogger } from './process/log.ts';
  import { runInstallation } from './cni/agent/installation/install.ts';
  const [cniBinDir, plugins] = process.argv.slice(1);
  process.exitCode = await runInstallation({ cniBinDir }, createLogger('info', 'test'), plugins);
`;
const NODE_FLAGS = ['--import=tsx', '--input-type=module', '-e'];
const OLDER = 'older';
const KUBESPRAY_USER = 997;
/** The tests set up mounts, owners and capabilities. */
const CAN_RUN = process.platform === 'linux' && process.getuid?.() === 0;

interface Outcome {
  exitCode: number;
  message: string;
}

(CAN_RUN ? describe : describe.skip)('the installation of the plugin as root with few capabilities', function () {
  this.timeout(60_000);

  let root: string;
  let path: string;
  let plugins: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'holdfast-'));
    [path, plugins] = [join(root, 'bin'), join(root, 'dist')];
    await mkdir(path);
    await mkdir(plugins);
    for (const each of ['amd64', 'arm64']) {
      await writeFile(join(plugins, `holdfast-linux-${each}`), Buffer.alloc(256 * 1024, 'p'));
    }
  });
  afterEach(() => rm(root, { recursive: true }));

  /** @param mount a command that changes the directory in a mount namespace of its own @param after one that shows it afterwards */
  async function install(capabilities: string, mount = 'true', after = 'true'): Promise<Outcome> {
    const node = `"${process.execPath}" ${NODE_FLAGS.join(' ')} "$SCRIPT" "${path}" "${plugins}"`;
    const command = `${mount} && { setpriv --bounding-set ${capabilities} ${node}; code=$?; ${after}; exit $code; }`;
    const options = { cwd: ROOT, env: { ...process.env, SCRIPT } };
    try {
      const { stdout } = await run('unshare', ['--mount', 'bash', '-c', command], options);
      return { exitCode: 0, message: stdout };
    } catch (error) {
      const { code, stdout } = error as { code: number; stdout: string };
      return { exitCode: code, message: stdout };
    }
  }

  it('needs no capability in a directory that root owns', async () => {
    expect(await install('-all')).to.include({ exitCode: 0 });
    const { mode, size, uid } = await stat(join(path, 'holdfast'));
    expect({ mode: mode & 0o777, size, uid }).to.deep.equal({ mode: 0o755, size: 256 * 1024, uid: 0 });
  });

  it('fails in a directory of another user, and says whose it is and what to do', async () => {
    await chown(path, KUBESPRAY_USER, 0);
    const { exitCode, message } = await install('-all');
    expect(exitCode).to.equal(1);
    expect(message).to.include('EACCES').and.to.include('belongs to user 997 with mode 755: make root its owner, or');
    expect(await readdir(path)).to.deep.equal([]);
  });

  it('works in a directory of another user with CAP_DAC_OVERRIDE, even if that user owns an earlier plugin', async () => {
    await writeFile(join(path, 'holdfast'), OLDER, { mode: 0o755 });
    for (const each of [path, join(path, 'holdfast')]) await chown(each, KUBESPRAY_USER, 0);
    expect(await install('-all,+dac_override')).to.include({ exitCode: 0 });
    expect(await stat(join(path, 'holdfast'))).to.include({ uid: 0, size: 256 * 1024 });
  });

  it('keeps the earlier plugin and leaves no other file if the disk is full', async () => {
    const mount = `mount -t tmpfs -o size=64k none "${path}" && printf ${OLDER} > "${path}/holdfast" && chmod 755 "${path}/holdfast"`;
    const { exitCode, message } = await install('-all', mount, `ls -A "${path}"; cat "${path}/holdfast"`);
    expect(exitCode).to.equal(0);
    expect(message).to.include('ENOSPC').and.to.include('Free space on the file system');
    expect(message.slice(message.lastIndexOf('}') + 2)).to.equal(`holdfast\n${OLDER}`);
  });

  it('says that a directory is read-only', async () => {
    const { exitCode, message } = await install(
      '-all',
      `mount --bind "${path}" "${path}" && mount -o remount,bind,ro "${path}"`,
    );
    expect(exitCode).to.equal(1);
    expect(message).to.include('EROFS').and.to.include('The directory is read-only');
  });

  it('never shows an incomplete plugin, even if it is killed while it writes', async () => {
    const whole = Buffer.alloc(16 * 1024 * 1024, 'p');
    for (const each of ['amd64', 'arm64']) await writeFile(join(plugins, `holdfast-linux-${each}`), whole);
    await writeFile(join(path, 'holdfast'), OLDER, { mode: 0o755 });
    const child = spawn(process.execPath, [...NODE_FLAGS, SCRIPT, path, plugins], { cwd: ROOT, stdio: 'ignore' });
    const ended = once(child, 'exit');
    while ((await readdir(path)).length === 1 && child.exitCode === null) await setImmediate();
    child.kill('SIGKILL');
    await ended;
    const left = await readFile(join(path, 'holdfast'));
    expect(left.equals(whole) || left.toString() === OLDER, `${left.length} bytes`).to.equal(true);
    expect(await install('-all')).to.include({ exitCode: 0 });
    expect(await readdir(path)).to.deep.equal(['holdfast']);
  });
});
