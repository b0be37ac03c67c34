import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { capture } from '../../processes/processes.js';
import { type Descriptor, type Image, storeImage } from './oci-image.js';

describe('An OCI image', () => {
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

  const blobOf = (name: string, { digest }: Descriptor) => join(folder, name, digest.replace('sha256:', ''));
  const readJson = async (path: string) => JSON.parse(await readFile(path, 'utf8')) as unknown;

  /** @param name of a new folder for its blobs */
  async function partsOf(name: string, written = image) {
    const manifest = await storeImage(join(folder, name), written);
    const parts = (await readJson(blobOf(name, manifest))) as { config: Descriptor; layers: Descriptor[] };
    const config = (await readJson(blobOf(name, parts.config))) as { rootfs: { diff_ids: string[] } };
    return { manifest, layers: parts.layers, config, descriptors: [manifest, parts.config, ...parts.layers] };
  }

  it('has the blobs that its manifest and config describe', async () => {
    const { config, layers, descriptors } = await partsOf('layout');
    for (const descriptor of descriptors) {
      const bytes = await readFile(blobOf('layout', descriptor));
      expect(descriptor.digest).to.equal(`sha256:${createHash('sha256').update(bytes).digest('hex')}`);
      expect(descriptor.size).to.equal(bytes.length);
    }
    expect(descriptors.map(({ mediaType }) => mediaType.replace('application/vnd.oci.image.', ''))).to.deep.equal([
      'manifest.v1+json',
      'config.v1+json',
      'layer.v1.tar',
    ]);
    expect(await readdir(join(folder, 'layout'))).to.have.length(descriptors.length);
    expect(config.rootfs).to.deep.equal({ type: 'layers', diff_ids: layers.map(({ digest }) => digest) });
  });

  it('keeps the settings of containers', async () => {
    const { config } = await partsOf('named');
    expect(config).to.deep.include({ os: 'linux', config: image.config });
  });

  it('has files of root, with their modes, without links', async () => {
    const { layers } = await partsOf('files');
    const list = ['--list', '--verbose', '--numeric-owner', '--full-time', '--file', blobOf('files', layers[0]!)];
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
    const digestOf = async (name: string, written = image) => (await partsOf(name, written)).manifest.digest;
    const first = await digestOf('first');
    await utimes(join(folder, 'dist', 'holdfast.js'), 1, 1);
    expect(await digestOf('second', { ...image, files: [...image.files].reverse() })).to.equal(first);
    await writeFile(join(folder, 'dist', 'holdfast.js'), 'others');
    expect(await digestOf('third')).not.to.equal(first);
  });

  it('is not written with two files of one path', async () => {
    const files = [...image.files, { target: '/etc/passwd', text: '' }];
    const written = storeImage(join(folder, 'twice'), { ...image, files });
    expect(await written.catch((error: unknown) => error)).to.include({ code: 'EEXIST' });
    expect(await readdir(join(folder, 'twice'))).to.deep.equal([]);
  });
});
