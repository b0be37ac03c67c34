import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { capture } from '../processes/processes.js';
import { type Image, writeOciArchive } from './oci-archive.js';

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

describe('An OCI archive', () => {
  let folder: string;
  let image: Image;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-oci-'));
    await mkdir(join(folder, 'dist', 'cni'), { recursive: true });
    await writeFile(join(folder, 'dist', 'holdfast.js'), 'bundle', { mode: 0o644 });
    await writeFile(join(folder, 'dist', 'cni', 'holdfast'), 'plugin');
    await chmod(join(folder, 'dist', 'cni', 'holdfast'), 0o755);
    await symlink(join('dist', 'cni', 'holdfast'), join(folder, 'library'));
    image = {
      name: 'docker.io/library/holdfast:0.1.0',
      config: { User: '1000:1000', Entrypoint: ['/node', '/opt/dist/holdfast.js'] },
      files: [
        { source: join(folder, 'dist'), target: '/opt/dist' },
        { source: join(folder, 'library'), target: '/lib/library.so' },
        { text: 'root:x:0:0\n', target: '/etc/passwd' },
        { mode: 0o1777, target: '/tmp' },
      ],
    };
  });

  after(() => rm(folder, { recursive: true, force: true }));

  /** Writes an archive. @returns the folder of its layout */
  async function layoutOf(name: string, written = image): Promise<string> {
    const layout = join(folder, name);
    await mkdir(layout);
    await writeOciArchive(`${layout}.tar`, written);
    await capture('tar', ['--extract', '--file', `${layout}.tar`, '--directory', layout]);
    return layout;
  }

  const blobOf = (layout: string, { digest }: Pick<Descriptor, 'digest'>) =>
    join(layout, 'blobs', digest.replace(':', '/'));
  const readJson = async (path: string) => JSON.parse(await readFile(path, 'utf8')) as unknown;

  async function partsOf(layout: string) {
    const { manifests } = (await readJson(join(layout, 'index.json'))) as { manifests: Descriptor[] };
    const manifest = (await readJson(blobOf(layout, manifests[0]!))) as { config: Descriptor; layers: Descriptor[] };
    const config = (await readJson(blobOf(layout, manifest.config))) as { rootfs: { diff_ids: string[] } };
    return { manifests, ...manifest, config, descriptors: [...manifests, manifest.config, ...manifest.layers] };
  }

  it('has the layout that its index, manifest and config describe', async () => {
    const layout = await layoutOf('layout');
    expect(await readJson(join(layout, 'oci-layout'))).to.deep.equal({ imageLayoutVersion: '1.0.0' });
    const { config, layers, descriptors } = await partsOf(layout);
    for (const descriptor of descriptors) {
      const bytes = await readFile(blobOf(layout, descriptor));
      expect(descriptor.digest).to.equal(`sha256:${createHash('sha256').update(bytes).digest('hex')}`);
      expect(descriptor.size).to.equal(bytes.length);
    }
    expect(descriptors.map(({ mediaType }) => mediaType.replace('application/vnd.oci.image.', ''))).to.deep.equal([
      'manifest.v1+json',
      'config.v1+json',
      'layer.v1.tar',
    ]);
    expect(await readdir(join(layout, 'blobs', 'sha256'))).to.have.length(descriptors.length);
    expect(config.rootfs).to.deep.equal({ type: 'layers', diff_ids: layers.map(({ digest }) => digest) });
  });

  it('names its image for containerd and keeps the settings of containers', async () => {
    const { manifests, config } = await partsOf(await layoutOf('named'));
    expect(manifests.map(({ annotations }) => annotations)).to.deep.equal([
      { 'io.containerd.image.name': image.name, 'org.opencontainers.image.ref.name': '0.1.0' },
    ]);
    expect(config).to.deep.include({ os: 'linux', config: image.config });
  });

  it('has files of root, with their modes, without links', async () => {
    const layout = await layoutOf('files');
    const { layers } = await partsOf(layout);
    const list = ['--list', '--verbose', '--numeric-owner', '--full-time', '--file', blobOf(layout, layers[0]!)];
    const entries = (await capture('tar', list)).trim().split('\n');
    const found = entries.map((line) => /^(\S+) (\S+) +(\d+) (\S+) \S+ (.+)$/.exec(line)!.slice(1));
    expect(new Set(found.map(([, owner]) => owner))).to.deep.equal(new Set(['0/0']));
    expect(new Set(found.map(([, , , date]) => date))).to.deep.equal(new Set(['1970-01-01']));
    expect(found.map(([mode, , size, , path]) => `${mode!} ${size!} ${path!}`)).to.have.members([
      'drwxr-xr-x 0 etc/',
      '-rw-r--r-- 11 etc/passwd',
      'drwxr-xr-x 0 lib/',
      '-rwxr-xr-x 6 lib/library.so',
      'drwxr-xr-x 0 opt/',
      'drwxr-xr-x 0 opt/dist/',
      'drwxr-xr-x 0 opt/dist/cni/',
      '-rwxr-xr-x 6 opt/dist/cni/holdfast',
      '-rw-r--r-- 6 opt/dist/holdfast.js',
      'drwxrwxrwt 0 tmp/',
    ]);
  });

  it('is the same for the same files at another time, and not for others', async () => {
    const digestOf = async (layout: string) => (await partsOf(layout)).manifests[0]!.digest;
    const first = await digestOf(await layoutOf('first'));
    await utimes(join(folder, 'dist', 'holdfast.js'), 1, 1);
    expect(await digestOf(await layoutOf('second', { ...image, files: [...image.files].reverse() }))).to.equal(first);
    await writeFile(join(folder, 'dist', 'holdfast.js'), 'others');
    expect(await digestOf(await layoutOf('third'))).not.to.equal(first);
  });

  it('is not written with two files of one path', async () => {
    const files = [...image.files, { target: '/etc/passwd', text: '' }];
    const written = writeOciArchive(join(folder, 'twice.tar'), { ...image, files });
    expect(await written.catch((error: unknown) => error)).to.include({ code: 'EEXIST' });
    expect((await readdir(folder)).filter((name) => name.startsWith('twice'))).to.deep.equal([]);
  });
});
