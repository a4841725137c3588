// SPDX-License-Identifier: Apache-2.0 OR MIT
// Top module: the two processors, the window between them, and the bridge.
`default_nettype none
module backdoor (
    input  wire        clk,
    input  wire        resetn,
    output wire        print,
    output wire [ 7:0] letter,
    output wire        finished,
    output wire [31:0] code
);
  wire near_valid, far_valid, far_resetn, far_trap, far_wild;
  wire [31:0] near_addr, near_wdata, far_addr, far_wdata, far_pc;
  wire [3:0] near_wstrb, far_wstrb;
  wire near_window_ready, near_bridge_ready, far_window_ready, far_bridge_ready;
  wire [31:0] near_window_rdata, near_bridge_rdata, far_window_rdata, far_bridge_rdata;
  wire near_trap, near_wild;
  wire near_bridged = near_addr[28], far_bridged = far_addr[28];
  wire bridge_finished;
  wire [31:0] bridge_code;

  // The near side has no supervisor: an error of its program ends the simulation.
  assign finished = bridge_finished || near_trap || near_wild;
  assign code = bridge_finished ? bridge_code : 32'hdead;

  node #(.NAME("near"), .STORE_WORDS(16384), .RAM_WORDS(65536)) near (
      .clk(clk), .resetn(resetn), .trap(near_trap), .wild(near_wild), .pc(), .address(near_addr),
      .out_valid(near_valid), .out_wdata(near_wdata), .out_wstrb(near_wstrb),
      .out_ready(near_window_ready || near_bridge_ready),
      .out_rdata(near_bridged ? near_bridge_rdata : near_window_rdata)
  );
  node #(.NAME("far"), .STORE_WORDS(1024)) far (
      .clk(clk), .resetn(resetn && far_resetn), .trap(far_trap), .wild(far_wild), .pc(far_pc),
      .address(far_addr), .out_valid(far_valid), .out_wdata(far_wdata), .out_wstrb(far_wstrb),
      .out_ready(far_window_ready || far_bridge_ready),
      .out_rdata(far_bridged ? far_bridge_rdata : far_window_rdata)
  );
  window shared (
      .clk(clk),
      .near_valid(near_valid && !near_bridged), .near_addr(near_addr[15:0]),
      .near_wdata(near_wdata), .near_wstrb(near_wstrb), .near_ready(near_window_ready),
      .near_rdata(near_window_rdata),
      .far_valid(far_valid && !far_bridged), .far_addr(far_addr[15:0]), .far_wdata(far_wdata),
      .far_wstrb(far_wstrb), .far_ready(far_window_ready), .far_rdata(far_window_rdata)
  );
  bridge between (
      .clk(clk), .resetn(resetn),
      .near_valid(near_valid && near_bridged), .near_addr(near_addr[5:0]),
      .near_wdata(near_wdata), .near_write(near_wstrb != 0), .near_ready(near_bridge_ready),
      .near_rdata(near_bridge_rdata),
      .far_valid(far_valid && far_bridged), .far_addr(far_addr[5:0]), .far_wdata(far_wdata),
      .far_write(far_wstrb != 0), .far_ready(far_bridge_ready), .far_rdata(far_bridge_rdata),
      .far_resetn(far_resetn), .far_trap(far_trap), .far_wild(far_wild), .far_pc(far_pc),
      .far_address(far_addr), .print(print), .letter(letter), .finished(bridge_finished),
      .code(bridge_code)
  );
endmodule
`default_nettype wire
