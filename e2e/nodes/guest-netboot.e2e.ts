import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { GuestBootFile } from '../../api/address-pool.js';
import { parseAddress } from '../../addressing/address/address.js';
import { PacketTable, startPackets } from '../../bed/holdfast/packets.js';
import { type RunningCommand, type Wire, openWire } from '../../bed/network/wire.js';
import { Processes } from '../../bed/processes/processes.js';
import { until } from '../../bed/processes/wait.js';
import { ensureGuestPrograms } from '../../bed/real-nodes/images/guest-programs.js';
import { helperConfig } from '../../guest/responder-tables/protocol.js';
import { compiledPool } from '../../test/objects/lease-objects.js';

const SEGMENT = 'br-netboot';
const MAC = '02:00:00:00:76:10';
const [SERVER, SERVER6] = ['10.76.0.8', 'fd00:76::8'];
/** The script of iPXE. The firmware has loaded iPXE before. */
const SCRIPT = '#!ipxe\necho net-booted ${net0/ip}\nshell\n';
const FOR_IPXE: GuestBootFile = { ipxe: true, file: `http://${SERVER}/boot.ipxe` };
const PXE = { IPv4PXESupport: 'n', IPv6PXESupport: 'n' };

/** A bridge with the interface of the namespace and one of QEMU. Without KVM, and without the firmware of the card, which is iPXE. */
const FIRMWARE = `
/sbin/ip link add br0 type bridge mcast_snooping 0
/sbin/ip tuntap add tap0 mode tap
for device in eth0 tap0; do /sbin/ip link set $device master br0 up; done
/sbin/ip link set br0 up
code=$ROOT/usr/share/OVMF/OVMF_CODE_4M.fd
exec "$ROOT/usr/bin/qemu-system-x86_64" -L "$ROOT/usr/share/qemu" -L "$ROOT/usr/share/seabios" -machine q35,accel=tcg -m 256 \
  -nodefaults -display none -serial stdio \
  -drive if=pflash,format=raw,readonly=on,file="$code" -drive if=pflash,format=raw,file="$VARS" \
  -netdev tap,id=net,ifname=tap0,script=no,downscript=no \
  -device virtio-net-pci,netdev=net,mac=${MAC},romfile=,bootindex=0 -device virtio-rng-pci $SETTINGS`;

/** Firmware in QEMU, holdfast-packets, and servers on one segment. The boot files are those of a pool. */
function describeNetboot(): void {
  let wire: Wire;
  let processes: Processes;
  let folder: string;
  let root: string;
  let table: PacketTable;
  const running: RunningCommand[] = [];

  before('start holdfast-packets', async function () {
    this.timeout(120_000);
    folder = await mkdtemp(join(tmpdir(), 'holdfast-netboot-'));
    const progress = (line: string) => process.stderr.write(`    ${line}\n`);
    ({ root } = await ensureGuestPrograms(progress));
    processes = new Processes(join(folder, 'logs'), join(folder, 'data'));
    const opened = await openWire(processes, progress);
    if (opened === undefined) throw new Error('real nodes have real networks');
    wire = opened;
    await mkdir(join(folder, 'files'));
    await copyFile(join(root, 'boot/ipxe.efi'), join(folder, 'files/ipxe.efi'));
    await writeFile(join(folder, 'files/boot.ipxe'), SCRIPT);
    await wire.addHost('responder', SEGMENT, []);
    await wire.addHost('server', SEGMENT, [`${SERVER}/24`, `${SERVER6}/64`]);
    const disable = 'echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6';
    await wire.run('host/responder', { command: '/bin/sh', args: ['-c', disable] });
    const socket = join(folder, 'packets.sock');
    await startPackets(wire, 'host/responder', socket);
    table = await PacketTable.connect(socket);
    const busybox = { command: join(root, 'bin/busybox'), args: ['httpd', '-f', '-h', join(folder, 'files')] };
    await wire.start('host/server', busybox);
  });

  afterEach('stop the firmware', async () => {
    for (const each of running.splice(0)) await each.stop();
    await wire.removeHost('firmware');
  });

  after('remove the network', async () => {
    await processes.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('loads iPXE by TFTP, which loads its script by HTTP', async function () {
    this.timeout(300_000);
    await serve([FOR_IPXE, { architectures: [7], servers: [SERVER], file: 'ipxe.efi' }]);
    await startDnsmasq();
    const { output } = await startFirmware();
    await untilBooted(output);
    expect(output.stdout).to.include('Start PXE over IPv4').and.include('NBP filename is ipxe.efi');
    expect(output.stdout).to.include(FOR_IPXE.file);
  });

  it('loads the same by TFTP over IPv6', async function () {
    this.timeout(300_000);
    await serve([FOR_IPXE, { architectures: [7], servers: [SERVER6], file: 'ipxe.efi' }]);
    await startDnsmasq();
    const { output } = await startFirmware({ IPv4PXESupport: 'n' });
    await untilBooted(output);
    expect(output.stdout).to.include('Start PXE over IPv6').and.include('NBP filename is ipxe.efi');
  });

  for (const [version, host] of [
    [4, SERVER],
    [6, `[${SERVER6}]`],
  ] as const) {
    it(`loads the same by HTTP boot over IPv${version}`, async function () {
      this.timeout(300_000);
      const file = `http://${host}/ipxe.efi`;
      await serve([FOR_IPXE, { architectures: [16], file }]);
      const { output } = await startFirmware(PXE);
      await untilBooted(output);
      expect(output.stdout).to.include(`Start HTTP Boot over IPv${version}`).and.include(`URI: ${file}`);
    });
  }

  it('gets its address from us and its file from a proxy DHCP server, which is no foreign server', async function () {
    this.timeout(300_000);
    await serve([FOR_IPXE]);
    await startDnsmasq('--dhcp-range=10.76.0.0,proxy', '--pxe-service=x86-64_EFI,boot,ipxe.efi');
    const { output } = await startFirmware();
    await untilBooted(output);
    expect(output.stdout).to.include('NBP filename is ipxe.efi');
    expect(table.reports).not.to.include('"seen"');
  });

  /** The table has one guest. */
  function serve(boot: readonly GuestBootFile[]): Promise<void> {
    const pool = compiledPool({
      subnets: [{ cidr: '10.76.0.0/24' }, { cidr: 'fd00:76::/64' }],
      guest: { attachment: 'blue', dhcp: { boot: [...boot] } },
    });
    const responder = { name: 'one', addresses: [parseAddress('10.76.0.2')] };
    const addresses = { ipv4: { address: '10.76.0.10', prefix: 24 }, ipv6: { address: 'fd00:76::10' } };
    table.send({ config: helperConfig(pool, responder, [], 'eth0') }, { snapshot: 'begin' }, { options: { id: 'a' } });
    return table.apply(
      { put: [{ mac: MAC, options: 'a', ...addresses }] },
      { snapshot: 'end' },
      { fresh: { forMs: 3_600_000 } },
    );
  }

  const environmentOf = (more: Record<string, string> = {}) => ({
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    LD_LIBRARY_PATH: ['usr/lib', 'lib'].map((each) => join(root, each, 'x86_64-linux-gnu')).join(':'),
    ROOT: root,
    ...more,
  });

  async function startDnsmasq(...more: string[]): Promise<void> {
    const command = join(root, 'usr/sbin/dnsmasq');
    const common = [
      '--no-daemon',
      '--conf-file=/dev/null',
      '--port=0',
      '--interface=eth0',
      '--user=root',
      '--group=root',
    ];
    const tftp = ['--enable-tftp', `--tftp-root=${join(folder, 'files')}`];
    const args = [...common, ...tftp, '--pid-file=/run/dnsmasq.pid', '--dhcp-leasefile=/run/leases', ...more];
    running.push(await wire.start('host/server', { command, args, env: environmentOf(), mounts: 'private' }));
  }

  async function startFirmware(settings: Record<string, string> = {}): Promise<RunningCommand> {
    const variables = join(folder, 'vars.fd');
    await copyFile(join(root, 'usr/share/OVMF/OVMF_VARS_4M.fd'), variables);
    await wire.addHost('firmware', SEGMENT, []);
    const options = Object.entries(settings).map(
      ([name, value]) => `-fw_cfg name=opt/org.tianocore/${name},string=${value}`,
    );
    const env = environmentOf({ VARS: variables, SETTINGS: options.join(' ') });
    const started = await wire.start('host/firmware', { command: '/bin/sh', args: ['-ec', FIRMWARE], env });
    running.push(started);
    return started;
  }

  async function untilBooted(output: RunningCommand['output']): Promise<void> {
    await until('iPXE to run its script', () => output.stdout.includes('net-booted 10.76.0.10'), {
      timeoutMs: 270_000,
    }).catch((error: unknown) => {
      process.stderr.write(output.stdout + output.stderr);
      throw error;
    });
  }
}

if (process.env.BED_GUESTS !== undefined) describe('Firmware that boots over a layer-2 network', describeNetboot);
